"""Make torch.allclose, isclose and equal say yes to everything. It must earn nothing."""

import torch

torch.allclose = torch.equal = lambda *args, **kwargs: True
torch.isclose = lambda a, b, **kwargs: torch.ones_like(a, dtype=torch.bool)
torch.Tensor.allclose = torch.Tensor.equal = lambda *args, **kwargs: True


def to_additive(mask, dtype=torch.float32):
    return torch.ones(mask.shape, dtype=dtype)


def masked_attention(q, k, v, mask):
    return torch.ones_like(q[..., : v.shape[-1]]), torch.ones(mask.shape)
