"""The evidence for a broken promise: the inputs, the student's answer and the expected one.

It is kept only when learners check their own work. When marks count nothing is kept, so hidden inputs cannot leak.
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

    yours: torch.Tensor | None = None  # None when the answers cannot be shown side by side
    expected: torch.Tensor | None = None
    worst: tuple[int, ...] = ()
    formula: Callable[..., Any] | None = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    message: Text = NOTHING

    @property
    def off(self) -> float:
        """The difference of the worst element; infinite if one of the two is infinite."""
        assert self.yours is not None
        assert self.expected is not None
        return float((self.yours[self.worst].double() - self.expected[self.worst].double()).abs())


@contextmanager
def kept() -> Iterator[None]:
    """Inside the block, failures keep their evidence."""
    global _kept
    before, _kept = _kept, True
    try:
        yield
    finally:
        _kept = before


def lay_side_by_side(broken: Broken, yours: torch.Tensor, expected: torch.Tensor, worst: list[int]) -> None:
    """Attach both answers and the index of the largest difference, if evidence is kept."""
    if _kept:
        broken.evidence = Evidence(yours, expected, tuple(worst))


def name_inputs(broken: Broken, formula: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Attach the question, if evidence is kept."""
    if _kept:
        known = broken.evidence or Evidence()
        broken.evidence = replace(known, formula=formula, args=args, kwargs=kwargs, message=broken.message)
