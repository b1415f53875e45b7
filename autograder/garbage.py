"""Answers that are no answers. They must earn nothing on any promise, and must not upset the examiner."""

import math

import torch
from torch import nn

from .catalogue import Part


class _Echo(nn.Module):
    def forward(self, *args, **kwargs):
        return args[0]


def _raise(*args, **kwargs):
    raise ValueError("no")


def answers(part: Part, right) -> dict[str, object]:
    """Worthless stand-ins for `right`, the reference of this part."""
    worthless = {
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


SHAPED = {
    "zeros": torch.zeros_like,
    "ones": torch.ones_like,
    "NaN": lambda x: torch.full_like(x, math.nan) if x.is_floating_point() else torch.zeros_like(x),
    "another shape": lambda x: x[None],
}


def disguised(part: Part, right, change):
    """The right structure with changed content: `change` is applied to every tensor, and other numbers are 0."""
    if part.kind == "function":
        return lambda *args, **kwargs: _mapped(right(*args, **kwargs), change)

    def forward(self, *args, **kwargs):
        return _mapped(right.forward(self, *args, **kwargs), change)

    return type(part.name, (right,), {"forward": forward})


def _mapped(value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(_mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return 0
