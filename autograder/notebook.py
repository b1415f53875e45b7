"""What a learner calls from a notebook: `check("masked_attention")` and `hint("masked_attention")`.

The same suites as when marks count, run here against the notebook's own functions. Nothing heavy is imported before it
is needed, so that the first cell of a notebook is quick.
"""

import sys

from .catalogue import Exercise, Part, catalogue
from .language import preferred


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
    from . import card
    from .lesson import learn

    lang = preferred(lang)
    exercise, part = _find(name, lang)
    if namespace is None:
        namespace = sys._getframe(1).f_globals
    told = learn(exercise, part, namespace)
    return Card(card.text(told, lang), card.html(told, lang))


def hint(name: str, step: int | None = None, lang: str | None = None) -> Card:
    """The next hint about one part; asking again gives the one after. `step` goes back to one, counted from 1."""
    from . import card
    from .hinting import hints
    from .progress import next_hint

    lang = preferred(lang)
    exercise, part = _find(name, lang)
    steps = hints(exercise)[part.name]
    if step is not None and not 1 <= step <= len(steps):
        en, zh = f"{name} has hints 1 to {len(steps)}, not {step!r}", f"{name} 有提示 1 到 {len(steps)}，没有 {step!r}"
        raise ValueError(zh if lang == "zh" else en)
    at = step - 1 if step is not None else next_hint(exercise, part.name, len(steps))
    return Card(*card.hint(part.name, at, steps, lang))


def _find(name: str, lang: str) -> tuple[Exercise, Part]:
    for exercise in catalogue().values():
        for part in exercise.parts:
            if part.name == name:
                return exercise, part
    known = ", ".join(part.name for exercise in catalogue().values() for part in exercise.parts)
    en, zh = f"no part is called {name!r}; there are {known}", f"没有叫 {name!r} 的部分；有的是 {known}"
    raise LookupError(zh if lang == "zh" else en)
