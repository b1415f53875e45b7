"""Show what was found about one part: as HTML in a notebook, as text elsewhere."""

from html import escape

from .language import VERDICTS

COLOURS = {"pass": "#1a7f37", "missing": "#6e7781"}
FAILED = "#cf222e"


def text(part: dict, lang: str) -> str:
    """A few plain lines."""
    lines = [f"{part['id']}: {VERDICTS[part['verdict']][lang]} ({part['score']:g}/{part['max_score']})"]
    lines += [f"  {'✓' if promise['kept'] else '✗'} {promise[lang]}" for promise in part["promises"]]
    if part["message"][lang]:
        lines += ["", part["message"][lang]]
    return "\n".join(lines)


def html(part: dict, lang: str) -> str:
    """A self-contained card. Everything that came from a student is escaped."""
    colour = COLOURS.get(part["verdict"], FAILED)
    rows = "".join(
        f'<li style="margin:.1em 0"><span style="color:{COLOURS["pass"] if promise["kept"] else FAILED}" aria-hidden="true">'
        f"{'✓' if promise['kept'] else '✗'}</span> {escape(promise[lang])}</li>"
        for promise in part["promises"]
    )
    message = part["message"][lang]
    detail = (
        f'<pre style="white-space:pre-wrap;margin:.6em 0 0;padding:.6em;border-left:3px solid {colour}">'
        f"{escape(message)}</pre>"
        if message
        else ""
    )
    return (
        f'<div lang="{"zh-CN" if lang == "zh" else "en"}" style="border:1px solid {colour};border-radius:6px;'
        f'padding:.7em 1em;max-width:52em;line-height:1.5"><div><b style="color:{colour}">'
        f"{escape(VERDICTS[part['verdict']][lang])}</b> · <code>{escape(part['id'])}</code> · "
        f"{part['score']:g}/{part['max_score']}</div>"
        f'<ul style="list-style:none;margin:.4em 0 0;padding:0">{rows}</ul>{detail}</div>'
    )
