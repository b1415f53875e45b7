"""Show the result of one part: as HTML in a notebook, as text elsewhere.

The HTML contains its own styles and works on light and dark pages. Text has the page's colour; coloured boxes have white
text on a solid background, or a half-transparent tint.
"""

from html import escape

from autograder.language import COLON, Text
from autograder.results import Failure, Lesson, PartReport, PromiseReport
from autograder.verdicts import VERDICT_WORDS, Verdict

from . import heatmap

GREEN, RED, GREY = "#1a7f37", "#cf222e", "#656d76"
SIGNS = {"✓": GREEN, "✗": RED, "·": GREY}
LINE = "rgba(128,128,128,.4)"
LINK = "color:inherit;text-decoration:underline"  # no blue works on both light and dark pages
POINTS = Text("points", "分")
MISTAKE = Text("Likely mistake", "很可能是这个错误")
SEEN_ON = Text("Seen on", "输入")
YOURS, EXPECTED = Text("yours", "你的"), Text("expected", "应为")
WORST = Text("the worst element", "偏差最大的元素")
READ = Text("Read", "阅读")
STUCK = Text("Stuck? {}", "卡住了？{}")
STILL_OPEN = Text("Right. Still open here", "正确。本练习还剩")
WHY, NEXT = Text("Why it works", "为什么行得通"), Text("What to try next", "接下来试试")
HINT = Text("hint {} of {}", "提示 {}/{}")
MORE = Text("Run it again for the next one.", "再运行一次，看下一条。")
BACK = Text("That was the last one. {} begins again.", "这是最后一条。{} 从头再看。")


def text(part: PartReport, lang: str, lesson: Lesson | None = None) -> str:
    """A few plain lines."""
    lines = [f"{part.id}: {VERDICT_WORDS[part.verdict][lang]} ({part.score:g}/{part.max_score:g})"]
    lines += [f"  {_sign(promise, part)} {promise.text[lang]}" for promise in part.promises]
    if lesson and lesson.failure:
        lines += ["", *_text_of_failure(part.id, lesson.failure, lang)]
    elif part.message:
        lines += ["", part.told(lang)]
    elif lesson and (after := afterwards_text(lesson, lang)):
        lines += ["", after]
    return "\n".join(lines)


def afterwards_text(lesson: Lesson, lang: str) -> str:
    """The text shown when a part is right, as plain lines."""
    return "\n".join(f"{title}{COLON[lang]}{words}" for title, words in _afterwards(lesson, lang))


def _text_of_failure(name: str, failure: Failure, lang: str) -> list[str]:
    lines = [failure.message[lang]]
    if failure.traceback:
        lines += [f"  {line}" for line in failure.traceback.split("\n")]
    if failure.mistake:
        lines.append(f"  {MISTAKE[lang]}{COLON[lang]}{failure.mistake[lang]}")
    if failure.inputs:
        lines.append(f"  {SEEN_ON[lang]}{COLON[lang]}{failure.inputs}")
    for title, shown in ((YOURS, failure.yours), (EXPECTED, failure.expected)):
        if shown:
            lines += [f"  {line}" for line in heatmap.text(title[lang], shown).split("\n")]
    where = failure.section
    lines.append(f"  {READ[lang]}{COLON[lang]}{where.words[lang]} {where.address[lang]}")
    return [*lines, f"  {STUCK[lang].format(_call(name))}"]


def html(part: PartReport, lang: str, lesson: Lesson | None = None) -> str:
    """A self-contained card. Everything that came from a student is escaped."""
    colour = {Verdict.PASS: GREEN, Verdict.MISSING: GREY}.get(part.verdict, RED)
    rows = "".join(
        f'<li style="display:flex;gap:.5em;margin:.15em 0">{_mark(promise, part)}<span>{inline(promise.text[lang])}</span></li>'
        for promise in part.promises
    )
    if lesson and lesson.failure:
        below = _failure(part.id, lesson.failure, colour, lang)
    elif part.message:
        below = _block(colour, _pre(part.told(lang)))
    else:
        after = _afterwards(lesson, lang) if lesson else []
        below = _block(
            colour, "".join(f"<div><b>{title}</b>{COLON[lang]}{inline(words)}</div>" for title, words in after)
        )
    points = f"{part.score:g}/{part.max_score:g} {POINTS[lang]}"
    head = f"{_badge(VERDICT_WORDS[part.verdict][lang], colour)} <code>{escape(part.id)}</code> · {points}"
    return _frame(f'<div>{head}</div><ul style="list-style:none;margin:.4em 0 0;padding:0">{rows}</ul>{below}', lang)


def hint(name: str, step: int, steps: list[Text], lang: str) -> tuple[str, str]:
    """One hint as text and as HTML."""
    count, words = HINT[lang].format(step + 1, len(steps)), steps[step][lang].strip()
    again = _call(name, ", step=1")
    after = MORE[lang] if step + 1 < len(steps) else BACK[lang].format(again)
    body = _pre(words) if "\n" in words else f"<div>{inline(words)}</div>"
    after_html = escape(after).replace(escape(again), f"<code>{escape(again)}</code>")
    shown = (
        f"<div>{_badge(count, GREY)} <code>{escape(name)}</code></div>{_block(GREY, body)}"
        f'<div style="opacity:.8;font-size:.9em;margin-top:.4em">{after_html}</div>'
    )
    return f"{name}, {count}:\n{words}\n({after})", _frame(shown, lang)


def _failure(name: str, failure: Failure, colour: str, lang: str) -> str:
    blocks = [_pre(failure.message[lang])]
    if failure.traceback:
        blocks.append(_pre(failure.traceback))
    if failure.mistake:
        blocks.append(f"<div><b>{MISTAKE[lang]}</b>{COLON[lang]}{inline(failure.mistake[lang])}</div>")
    if failure.inputs:
        blocks.append(f"<div>{SEEN_ON[lang]}{COLON[lang]}<code>{escape(failure.inputs)}</code></div>")
    if failure.yours and failure.expected:
        largest = heatmap.scale(failure.yours, failure.expected)
        sides = ((YOURS, failure.yours), (EXPECTED, failure.expected))
        maps = [heatmap.html(title[lang], shown, largest, WORST[lang]) for title, shown in sides]
        blocks.append(f'<div style="overflow-x:auto">{"".join(maps)}</div>')
    where = failure.section
    link = f'<a href="{escape(where.address[lang])}" target="_blank" rel="noopener" style="{LINK}">{escape(where.words[lang])}</a>'
    way_on = f"{READ[lang]}{COLON[lang]}{link} · {STUCK[lang].format(f'<code>{escape(_call(name))}</code>')}"
    return _block(colour, "".join([*blocks, f"<div>{way_on}</div>"]))


def _afterwards(lesson: Lesson, lang: str) -> list[tuple[str, str]]:
    if lesson.still_open:
        return [(STILL_OPEN[lang], ", ".join(f"`{name}`" for name in lesson.still_open))]
    if lesson.afterwards is None:
        return []
    return [(WHY[lang], lesson.afterwards.why[lang].strip()), (NEXT[lang], lesson.afterwards.next[lang].strip())]


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
    """Preformatted text. In a traceback, the line that failed is bold."""
    lines = (f"<b>{line}</b>" if line.startswith("----&gt;") else line for line in escape(words).split("\n"))
    shown = "\n".join(lines)
    return (
        '<pre style="white-space:pre-wrap;overflow-wrap:anywhere;margin:0;padding:0;background:none;color:inherit;'
        f'font:12.5px/1.5 ui-monospace,monospace">{shown}</pre>'
    )


def _badge(words: str, colour: str) -> str:
    return f'<b style="background:{colour};color:#fff;border-radius:4px;padding:.1em .5em">{escape(words)}</b>'


def _sign(promise: PromiseReport, part: PartReport) -> str:
    """The sign for a promise that is kept, broken, or not tested because nothing is written yet."""
    return "✓" if promise.kept else "·" if part.verdict is Verdict.MISSING else "✗"


def _mark(promise: PromiseReport, part: PartReport) -> str:
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
