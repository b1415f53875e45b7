"""Replace Tensor.__eq__, all, any, abs and max by what always looks right. It must earn nothing."""

import torch

torch.Tensor.__eq__ = lambda self, other: torch.tensor(True)
torch.Tensor.__le__ = torch.Tensor.__lt__ = lambda self, other: torch.tensor(True)
torch.Tensor.all = lambda self, *args, **kwargs: torch.tensor(True)
torch.Tensor.abs = torch.Tensor.__sub__ = lambda self, *args: self * 0


def causal_mask(q_len, k_len=None):
    return torch.zeros(q_len, k_len or q_len, dtype=torch.bool)
