"""The wrong answers people really write, each with a name and a sentence in both languages.

A mistake stands in for one part. It may use the reference for everything except its own fault.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from autograder.language import Text

Answer = TypeVar("Answer", bound=Callable[..., Any])


@dataclass(frozen=True)
class Mistake:
    name: str
    part: str
    text: Text
    answer: Callable[..., Any]  # the wrong function or class


def mistake(part: str, *, en: str, zh: str) -> Callable[[Answer], Answer]:
    """Register a wrong answer to `part`, with the sentence that names it."""

    def register(answer: Answer) -> Answer:
        setattr(answer, "mistake", Mistake(answer.__name__, part, Text(en, zh), answer))  # noqa: B010 — a class, too
        return answer

    return register


def mistakes_of(module: str) -> list[Mistake]:
    """All mistakes of one exercise, in the order in which they are written."""
    found = vars(importlib.import_module(f"{__name__}.{module}")).values()
    return [thing.mistake for thing in found if hasattr(thing, "mistake")]
