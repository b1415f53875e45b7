"""Show what was found about one part: as HTML in a notebook, as text elsewhere.

The HTML carries its styles with it and works on light and on dark pages alike: text has the page's own colour, and what
is coloured has white text on a solid ground, or a tint that is half transparent.
"""

from html import escape

from . import heatmap
from .language import VERDICTS

GREEN, RED, GREY = "#1a7f37", "#cf222e", "#656d76"
SIGNS = {"✓": GREEN, "✗": RED, "·": GREY}
LINE = "rgba(128,128,128,.4)"
LINK = "color:inherit;text-decoration:underline"  # a blue for light pages cannot be read on dark ones
WORDS = {
    "points": {"en": "points", "zh": "分"},
    "mistake": {"en": "Likely mistake", "zh": "很可能是这个错误"},
    "seen on": {"en": "Seen on", "zh": "输入"},
    "yours": {"en": "yours", "zh": "你的"},
    "expected": {"en": "expected", "zh": "应为"},
    "worst": {"en": "the worst element", "zh": "偏差最大的元素"},
    "read": {"en": "Read", "zh": "阅读"},
    "stuck": {"en": "Stuck? {}", "zh": "卡住了？{}"},
    "open": {"en": "Right. Still open here", "zh": "正确。本练习还剩"},
    "why": {"en": "Why it works", "zh": "为什么行得通"},
    "next": {"en": "What to try next", "zh": "接下来试试"},
    "hint": {"en": "hint {} of {}", "zh": "提示 {}/{}"},
    "more": {"en": "Run it again for the next one.", "zh": "再运行一次，看下一条。"},
    "back": {"en": "That was the last one. {} begins again.", "zh": "这是最后一条。{} 从头再看。"},
}


def say(word: str, lang: str, *about) -> str:
    return WORDS[word][lang].format(*about)


def text(part: dict, lang: str) -> str:
    """A few plain lines."""
    lines = [f"{part['id']}: {VERDICTS[part['verdict']][lang]} ({part['score']:g}/{part['max_score']:g})"]
    lines += [f"  {_sign(promise, part)} {promise[lang]}" for promise in part["promises"]]
    lesson = part.get("lesson", {})
    if "message" in lesson:
        lines += ["", *_text_of_failure(part["id"], lesson, lang)]
    elif part["message"][lang]:
        lines += ["", part["message"][lang]]
    elif told := afterwards_text(part, lang):
        lines += ["", told]
    return "\n".join(lines)


def afterwards_text(part: dict, lang: str) -> str:
    """What is said to those who are right, as plain lines."""
    told = _afterwards(part.get("lesson", {}), lang)
    return "\n".join(f"{title}{_colon(lang)}{words}" for title, words in told)


def _text_of_failure(name: str, lesson: dict, lang: str) -> list[str]:
    lines = [lesson["message"][lang]]
    if lesson.get("traceback"):
        lines += [f"  {line}" for line in lesson["traceback"].split("\n")]
    if lesson["mistake"]:
        lines.append(f"  {say('mistake', lang)}{_colon(lang)}{lesson['mistake'][lang]}")
    if "inputs" in lesson:
        lines.append(f"  {say('seen on', lang)}{_colon(lang)}{lesson['inputs']}")
    for side in ("yours", "expected"):
        if side in lesson:
            lines += [f"  {line}" for line in heatmap.text(say(side, lang), lesson[side]).split("\n")]
    where = lesson["section"]
    lines.append(f"  {say('read', lang)}{_colon(lang)}{where['words'][lang]} {where['address'][lang]}")
    return [*lines, f"  {say('stuck', lang, _call(name))}"]


def html(part: dict, lang: str) -> str:
    """A self-contained card. Everything that came from a student is escaped."""
    colour = {"pass": GREEN, "missing": GREY}.get(part["verdict"], RED)
    rows = "".join(
        f'<li style="display:flex;gap:.5em;margin:.15em 0">{_mark(promise, part)}<span>{inline(promise[lang])}</span></li>'
        for promise in part["promises"]
    )
    lesson = part.get("lesson", {})
    if "message" in lesson:
        below = _failure(part["id"], lesson, colour, lang)
    elif part["message"][lang]:
        below = _block(colour, _pre(part["message"][lang]))
    else:
        told = _afterwards(lesson, lang)
        below = _block(
            colour, "".join(f"<div><b>{title}</b>{_colon(lang)}{inline(words)}</div>" for title, words in told)
        )
    points = f"{part['score']:g}/{part['max_score']:g} {say('points', lang)}"
    head = f"{_badge(VERDICTS[part['verdict']][lang], colour)} <code>{escape(part['id'])}</code> · {points}"
    return _frame(f'<div>{head}</div><ul style="list-style:none;margin:.4em 0 0;padding:0">{rows}</ul>{below}', lang)


def hint(name: str, step: int, steps: list[dict], lang: str) -> tuple[str, str]:
    """One hint as text and as HTML."""
    count, words = say("hint", lang, step + 1, len(steps)), steps[step][lang].strip()
    again = _call(name, ", step=1")
    after = say("more", lang) if step + 1 < len(steps) else say("back", lang, again)
    body = _pre(words) if "\n" in words else f"<div>{inline(words)}</div>"
    after_html = escape(after).replace(escape(again), f"<code>{escape(again)}</code>")
    shown = (
        f"<div>{_badge(count, GREY)} <code>{escape(name)}</code></div>{_block(GREY, body)}"
        f'<div style="opacity:.8;font-size:.9em;margin-top:.4em">{after_html}</div>'
    )
    return f"{name}, {count}:\n{words}\n({after})", _frame(shown, lang)


def _failure(name: str, lesson: dict, colour: str, lang: str) -> str:
    blocks = [_pre(lesson["message"][lang])]
    if lesson.get("traceback"):
        blocks.append(_pre(lesson["traceback"]))
    if lesson["mistake"]:
        blocks.append(f"<div><b>{say('mistake', lang)}</b>{_colon(lang)}{inline(lesson['mistake'][lang])}</div>")
    if "inputs" in lesson:
        blocks.append(f"<div>{say('seen on', lang)}{_colon(lang)}<code>{escape(lesson['inputs'])}</code></div>")
    if "yours" in lesson:
        largest = heatmap.scale(lesson["yours"], lesson["expected"])
        maps = [heatmap.html(say(n, lang), lesson[n], largest, say("worst", lang)) for n in ("yours", "expected")]
        blocks.append(f'<div style="overflow-x:auto">{"".join(maps)}</div>')
    where = lesson["section"]
    link = f'<a href="{escape(where["address"][lang])}" target="_blank" rel="noopener" style="{LINK}">{escape(where["words"][lang])}</a>'
    way_on = f"{say('read', lang)}{_colon(lang)}{link} · {say('stuck', lang, f'<code>{escape(_call(name))}</code>')}"
    return _block(colour, "".join([*blocks, f"<div>{way_on}</div>"]))


def _afterwards(lesson: dict, lang: str) -> list[tuple[str, str]]:
    told = lesson.get("afterwards", {})
    if told.get("open"):
        return [(say("open", lang), ", ".join(f"`{name}`" for name in told["open"]))]
    return [(say(about, lang), told[about][lang].strip()) for about in ("why", "next") if about in told]


def _call(name: str, step: str = "") -> str:
    return f'hint("{name}"{step})'


def _frame(content: str, lang: str) -> str:
    return (
        f'<div lang="{"zh-CN" if lang == "zh" else "en"}" style="border:1px solid {LINE};border-radius:6px;padding:.6em .9em;'
        f'margin:.3em 0;max-width:54em;line-height:1.5;color:inherit">{content}</div>'
    )


def _block(colour: str, content: str) -> str:
    inside = "display:grid;grid-template-columns:minmax(0,1fr);gap:.35em"
    return (
        content
        and f'<div style="margin-top:.6em;padding-left:.8em;border-left:3px solid {colour};{inside}">{content}</div>'
    )


def _pre(words: str) -> str:
    """Text as it is; the line of a traceback that failed is bold."""
    lines = (f"<b>{line}</b>" if line.startswith("----&gt;") else line for line in escape(words).split("\n"))
    shown = "\n".join(lines)
    return (
        '<pre style="white-space:pre-wrap;overflow-wrap:anywhere;margin:0;padding:0;background:none;color:inherit;'
        f'font:12.5px/1.5 ui-monospace,monospace">{shown}</pre>'
    )


def _badge(words: str, colour: str) -> str:
    return f'<b style="background:{colour};color:#fff;border-radius:4px;padding:.1em .5em">{escape(words)}</b>'


def _sign(promise: dict, part: dict) -> str:
    """Kept, broken, or not yet to be judged because nothing is written."""
    return "✓" if promise["kept"] else "·" if part["verdict"] == "missing" else "✗"


def _mark(promise: dict, part: dict) -> str:
    sign = _sign(promise, part)
    return (
        f'<span style="flex:none;align-self:flex-start;text-align:center;width:1.4em;background:{SIGNS[sign]};'
        f'color:#fff;border-radius:4px;line-height:1.4">{sign}</span>'
    )


def inline(words: str) -> str:
    """Text with `code` in it."""
    pieces = escape(words).split("`")
    return "".join(
        f"<code>{piece}</code>" if i % 2 and i < len(pieces) - 1 else piece for i, piece in enumerate(pieces)
    )


def _colon(lang: str) -> str:
    return "：" if lang == "zh" else ": "
