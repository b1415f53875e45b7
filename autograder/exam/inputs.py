"""Inputs and numbers that several suites share."""

import torch

from .promises import Draw

PRECISIONS = (torch.float32, torch.bfloat16)
SIGMAS = 8  # standard deviations; a right answer is further off once in 10¹⁵ times


def triangle(n: int) -> torch.Tensor:
    """[n, n]: the causal mask, True where a query may look."""
    return torch.ones(n, n, dtype=torch.bool).tril()


def draw_qkv(
    draw: Draw, *lead: int, lq: int = 4, lk: int = 6, d: int = 9, e: int = 7, dtype: torch.dtype = torch.float64
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """q, k and v with pairwise distinct sizes. √d is a whole number, because many people compute it in float32."""
    return draw(*lead, lq, d, dtype=dtype), draw(*lead, lk, d, dtype=dtype), draw(*lead, lk, e, dtype=dtype)
