"""Begin a backward pass without importing SymPy. Both sides of the trust line use this module."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch


class _Start(torch.autograd.Function):
    """A single number whose gradient with respect to `output` is `weight`, exactly."""

    @staticmethod
    def forward(ctx: Any, output: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.weight = weight
        return output.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *one: Any) -> Any:
        return ctx.weight, None


def starts(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> Iterator[torch.Tensor]:
    """Where a backward pass begins, from pairs of an output and its cotangent.

    When `torch.autograd.grad` is given cotangents it first imports PyTorch's symbolic shapes and with them SymPy.
    That takes longer than checking an answer.
    """
    return (_Start.apply(output, weight) for output, weight in pairs)  # type: ignore[no-untyped-call]
