"""What a learner calls from a notebook: `check("masked_attention")` and `hint("masked_attention")`.

The same suites as when marks count, run here against the notebook's own functions.
"""

import sys
import tomllib
from pathlib import Path

from . import card
from .catalogue import Exercise, Part, catalogue
from .language import preferred

HINTS = Path(__file__).parent / "hints"
_steps: dict[str, int] = {}


class Card:
    """A result that shows itself: HTML in a notebook, text elsewhere."""

    def __init__(self, text: str, html: str):
        self.text, self.html = text, html

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return self.html


def check(name: str, lang: str | None = None, namespace: dict | None = None) -> Card:
    """Check your answer to one part, and say which mistake it is if it is one."""
    from .examiner import examination
    from .grading import report
    from .proxy import Local, Student

    exercise, part = _find(name)
    if namespace is None:
        namespace = sys._getframe(1).f_globals
    result = examination(exercise).examine(Student(Local(namespace)), parts=[part])[0]
    told, lang = report(exercise, result, ""), preferred(lang)
    return Card(card.text(told, lang), card.html(told, lang))


def hint(name: str, lang: str | None = None) -> Card:
    """The next hint about one part; asking again gives the one after."""
    exercise, part = _find(name)
    lang = preferred(lang)
    steps = hints(exercise)[part.name]
    step = min(_steps.get(name, 0), len(steps) - 1)
    _steps[name] = step + 1
    text = f"{part.name} ({step + 1}/{len(steps)}): {steps[step][lang]}"
    return Card(text, f'<div style="white-space:pre-wrap;max-width:52em">💡 {card.escape(text)}</div>')


def hints(exercise: Exercise) -> dict[str, list[dict[str, str]]]:
    """All hints of an exercise by part, from a nudge to a plan."""
    return tomllib.loads((HINTS / f"{exercise.name}.toml").read_text(encoding="utf-8"))


def _find(name: str) -> tuple[Exercise, Part]:
    for exercise in catalogue().values():
        for part in exercise.parts:
            if part.name == name:
                return exercise, part
    known = ", ".join(part.name for exercise in catalogue().values() for part in exercise.parts)
    raise LookupError(f"no part is called {name!r}; there are {known}")
