"""What a learner calls from a notebook: `check("masked_attention")` and `hint("masked_attention")`.

The same suites as in grading run here on the notebook's own functions. Large modules are imported only when they are
needed, so that the first cell of a notebook is fast.
"""

import sys
from typing import Any

from autograder.catalogue import Exercise, Part, catalogue
from autograder.language import Text, preferred


class Card:
    """A result that a notebook shows as HTML, and everything else as text."""

    def __init__(self, text: str, html: str):
        self.text, self.html = text, html

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def check(name: str, lang: str | None = None, namespace: dict[str, Any] | None = None) -> Card:
    """Check your answer to one part, and name the mistake if it is a known one."""
    from autograder.reports import card

    from .check_part import check_part

    lang = preferred(lang)
    exercise, part = _find(name, lang)
    if namespace is None:
        namespace = sys._getframe(1).f_globals
    lesson = check_part(exercise, part, namespace)
    return Card(card.text(lesson.report, lang, lesson), card.html(lesson.report, lang, lesson))


def hint(name: str, step: int | None = None, lang: str | None = None) -> Card:
    """The next hint about one part. `step` shows a certain hint again, counted from 1."""
    from autograder.hints import hints
    from autograder.reports import card

    from .progress import next_hint

    lang = preferred(lang)
    exercise, part = _find(name, lang)
    steps = hints(exercise)[part.name]
    if step is not None and not 1 <= step <= len(steps):
        there = Text(
            f"{name} has hints 1 to {len(steps)}, not {step!r}", f"{name} 有提示 1 到 {len(steps)}，没有 {step!r}"
        )
        raise ValueError(there[lang])
    at = step - 1 if step is not None else next_hint(exercise, part.name, len(steps))
    return Card(*card.hint(part.name, at, steps, lang))


def _find(name: str, lang: str) -> tuple[Exercise, Part]:
    for exercise in catalogue().values():
        for part in exercise.parts:
            if part.name == name:
                return exercise, part
    known = ", ".join(part.name for exercise in catalogue().values() for part in exercise.parts)
    raise LookupError(
        Text(f"no part is called {name!r}; there are {known}", f"没有叫 {name!r} 的部分；有的是 {known}")[lang]
    )
