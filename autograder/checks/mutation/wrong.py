"""What mutants call. Each function is wrong in a way that people are wrong, and raises where it makes no sense.

A mutant that raises is rejected. So a mutant that would change nothing, such as a rounded integer, is not mistaken for a
wrong answer that nobody noticed.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

FORBIDDEN = -1e4  # the number that many people write in place of minus infinity


def isqrt(x: Any) -> Any:
    """The square root, rounded down to a whole number."""
    return x.sqrt().floor() if isinstance(x, torch.Tensor) else math.isqrt(int(x))


def softmax_without_shift(x: torch.Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A softmax that overflows for large scores."""
    exponentials = x.to(dtype or x.dtype).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def softmax_without_zeros(x: torch.Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A softmax that takes a score of exactly 0 for a forbidden one."""
    return torch.softmax(x.masked_fill(x == 0, -torch.inf), dim, dtype=dtype)


def rounded(x: torch.Tensor | None) -> torch.Tensor | None:
    """The numbers of a tensor in float32, in a tensor of the same dtype."""
    return None if x is None else _floating(x).float().to(x.dtype)


def cut(x: torch.Tensor | None) -> torch.Tensor | None:
    """A tensor through which no gradient flows."""
    return None if x is None else _floating(x).detach()


def after_changing(argument: torch.Tensor | None, result: Any) -> Any:
    """The result, after an argument was changed in place."""
    if argument is not None:
        numbers = argument.detach()
        numbers.copy_(~numbers if numbers.dtype == torch.bool else numbers + 1)
    return result


def remembered_by_shape(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that answers a second question with the same shapes as it answered the first."""
    known: dict[Any, Any] = {}

    @functools.wraps(function)
    def remembering(*args: Any, **kwargs: Any) -> Any:
        key = tuple(_outline(value) for value in (*args, *kwargs.items()))
        if not any(isinstance(value, torch.Tensor) for value in (*args, *kwargs.values())):
            raise TypeError("there is no tensor to forget")
        if key not in known:
            known[key] = function(*args, **kwargs)
        return known[key]

    return remembering


def _outline(value: Any) -> Any:
    """Shape and dtype of a tensor, the identity of a module, and the text of anything else."""
    if isinstance(value, torch.nn.Module):
        return id(value)
    if isinstance(value, tuple):
        return tuple(_outline(item) for item in value)
    return (value.shape, value.dtype) if isinstance(value, torch.Tensor) else repr(value)


def _floating(x: torch.Tensor) -> torch.Tensor:
    if not x.is_floating_point():
        raise TypeError("not a floating-point tensor")
    return x
