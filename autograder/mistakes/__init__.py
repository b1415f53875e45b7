"""Wrong answers that people really write, each with a name and a sentence in both languages.

A mistake replaces the answer to one part. It may use the reference for everything except its own fault.

A mistake should have one fault only, so it must still refuse bad arguments. One that does not go through the reference
calls `_refuse_as_the_reference_does(right.f, *args)` first, which raises what the reference raises. Every chapter that
needs this helper defines it, because `checks/samples.py` copies a mistake out of its module without imports from here.
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
        setattr(answer, "mistake", Mistake(answer.__name__, part, Text(en, zh), answer))  # noqa: B010 — functions and classes declare no such attribute
        return answer

    return register


def mistakes_of(module: str) -> list[Mistake]:
    """All mistakes of one exercise, in the order of the file."""
    found = vars(importlib.import_module(f"{__name__}.{module}")).values()
    return [thing.mistake for thing in found if hasattr(thing, "mistake")]
