"""Make every random number 0.5, so that all inputs drawn in this process would be known. It must earn nothing."""

import random

import torch

torch.manual_seed = random.seed = lambda seed=0: None
torch.rand = torch.randn = lambda *shape, **kwargs: torch.full(shape, 0.5)
torch.randint = lambda *args, **kwargs: torch.ones(args[-1], dtype=torch.int64)


def masked_attention(q, k, v, mask):
    return v[..., : q.shape[-2], :], mask.double() / 2
