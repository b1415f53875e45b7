"""Read `hints/`: for each part steps from a nudge to pseudo-code, and for the whole exercise a word to those who are done."""

import tomllib
from functools import cache
from pathlib import Path

from .catalogue import Exercise

FOLDER = Path(__file__).parent / "hints"
AFTERWARDS = "afterwards"  # the one table of a hint file that is not a part


def hints(exercise: Exercise) -> dict[str, list[dict[str, str]]]:
    """All hints of an exercise by part, from a nudge to a plan."""
    return {name: steps for name, steps in _texts(exercise).items() if name != AFTERWARDS}


def afterwards(exercise: Exercise) -> dict[str, dict[str, str]]:
    """`{"why": {"en", "zh"}, "next": {"en", "zh"}}`: why it works, and what to try next."""
    return _texts(exercise)[AFTERWARDS]


@cache
def _texts(exercise: Exercise) -> dict:
    return tomllib.loads((FOLDER / f"{exercise.name}.toml").read_text(encoding="utf-8"))
