"""Worthless answers. They must keep no promise, and must not make the examiner fail."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from autograder.catalogue import Part
from autograder.student.nested import mapped


class _Echo(nn.Module):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return args[0]


def _raise(*args: Any, **kwargs: Any) -> None:
    raise ValueError("no")


def answers(part: Part, right: Any) -> dict[str, Any]:
    """Worthless stand-ins for `right`, the reference of this part."""
    worthless: dict[str, Any] = {
        "nothing": lambda *args, **kwargs: None,
        "a number": lambda *args, **kwargs: 0.5,
        "a word": lambda *args, **kwargs: "right",
        "its first argument": lambda *args, **kwargs: args[0] if args else None,
        "a module": lambda *args, **kwargs: _Echo(),
        "ValueError": _raise,
        "no function": "right",
    }
    for name, change in SHAPED.items():
        worthless[name] = disguised(part, right, change)
    return worthless


SHAPED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "NaN": lambda x: torch.full_like(x, math.nan) if x.is_floating_point() else torch.zeros_like(x),
    "another shape": lambda x: x[None],
}


def disguised(part: Part, right: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The right structure with changed content: `change` is applied to every tensor, and other numbers are 0."""
    if part.kind == "function":
        return lambda *args, **kwargs: _changed(right(*args, **kwargs), change)

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _changed(right.forward(self, *args, **kwargs), change)

    return type(part.name, (right,), {"forward": forward})


def _changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    return mapped(value, lambda leaf: change(leaf) if isinstance(leaf, torch.Tensor) else 0)
