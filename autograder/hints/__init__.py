"""The hints for each part, from a nudge to pseudo-code, and the text shown when a whole exercise is done."""

import tomllib
from functools import cache
from typing import Any

from autograder.catalogue import Exercise
from autograder.course import PACKAGE
from autograder.language import Text
from autograder.results import Afterwards

AFTERWARDS = "afterwards"  # the one table of a hint file that is not a part


def hints(exercise: Exercise) -> dict[str, list[Text]]:
    """All hints of an exercise by part, from a nudge to pseudo-code."""
    tables = {name: steps for name, steps in _tables(exercise).items() if name != AFTERWARDS}
    return {name: [_text(exercise, name, step) for step in steps] for name, steps in tables.items()}


def afterwards(exercise: Exercise) -> Afterwards:
    """Why it works, and what to try next."""
    about = _tables(exercise)[AFTERWARDS]
    return Afterwards(*(_text(exercise, AFTERWARDS, about[key]) for key in ("why", "next")))


def _text(exercise: Exercise, table: str, texts: dict[str, str]) -> Text:
    if set(texts) != {"en", "zh"}:
        raise LookupError(f"autograder/hints/{exercise.name}.toml: {table}: a text lacks a language")
    return Text(**texts)


@cache
def _tables(exercise: Exercise) -> dict[str, Any]:
    return tomllib.loads((PACKAGE / "hints" / f"{exercise.name}.toml").read_text(encoding="utf-8"))
