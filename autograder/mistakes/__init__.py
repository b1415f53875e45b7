"""The wrong answers people really write, each with a name and a sentence in both languages.

A mistake stands in for one part. It may lean on the reference for everything that is not its own wrongness.
"""

import importlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    name: str
    part: str
    text: dict[str, str]
    answer: object  # the wrong function or class


def mistake(part: str, *, en: str, zh: str):
    """Register a wrong answer to `part`, with the sentence that names it."""

    def register(answer):
        answer.mistake = Mistake(answer.__name__, part, {"en": en, "zh": zh}, answer)
        return answer

    return register


def mistakes_of(module: str) -> list[Mistake]:
    """All mistakes of one exercise, in the order in which they are written."""
    found = vars(importlib.import_module(f"{__name__}.{module}")).values()
    return [thing.mistake for thing in found if hasattr(thing, "mistake")]
