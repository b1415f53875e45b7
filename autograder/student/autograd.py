"""Start a backward pass without importing SymPy. Both sides of the trust line use this module."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch


class _Start(torch.autograd.Function):
    """A scalar whose gradient with respect to `output` is exactly `weight`."""

    @staticmethod
    def forward(ctx: Any, output: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.weight = weight
        return output.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *one: Any) -> Any:
        return ctx.weight, None


def starts(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> Iterator[torch.Tensor]:
    """The scalars at which a backward pass starts, from pairs of an output and its cotangent.

    With cotangents, `torch.autograd.grad` imports PyTorch's symbolic shapes and SymPy. That takes longer than a check.
    """
    return (_Start.apply(output, weight) for output, weight in pairs)
