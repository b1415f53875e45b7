"""What a broken promise was seen on: the inputs, your answer and the expected one.

Kept only where a learner checks their own work. When marks count nothing is kept, so that no hidden input can be told.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from autograder.language import NOTHING, Text
from autograder.verdicts import Broken

_kept = False


@dataclass
class Evidence:
    """One comparison that failed."""

    yours: torch.Tensor | None = None  # None when the answers cannot be laid side by side
    expected: torch.Tensor | None = None
    worst: tuple[int, ...] = ()
    formula: Callable[..., Any] | None = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    message: Text = NOTHING  # what is said about it

    @property
    def off(self) -> float:
        """How far the worst element is off; infinite where one of the two is."""
        assert self.yours is not None
        assert self.expected is not None
        return float((self.yours[self.worst].double() - self.expected[self.worst].double()).abs())


@contextmanager
def kept() -> Iterator[None]:
    """Inside, whatever fails leaves its evidence behind."""
    global _kept
    before, _kept = _kept, True
    try:
        yield
    finally:
        _kept = before


def lay_side_by_side(broken: Broken, yours: torch.Tensor, expected: torch.Tensor, worst: list[int]) -> None:
    """Attach both answers and where they differ most, where that is wanted."""
    if _kept:
        broken.evidence = Evidence(yours, expected, tuple(worst))


def name_inputs(broken: Broken, formula: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Attach what was asked, where that is wanted."""
    if _kept:
        known = broken.evidence or Evidence()
        broken.evidence = replace(known, formula=formula, args=args, kwargs=kwargs, message=broken.message)
