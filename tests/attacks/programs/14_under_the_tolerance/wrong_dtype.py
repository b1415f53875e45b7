"""The right numbers as another type: int for bool, float64 for float32. It must earn nothing."""

import torch


def causal_mask(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    return (torch.arange(k_len) <= torch.arange(q_len)[:, None] + (k_len - q_len)).to(torch.uint8)


def to_additive(mask, dtype=torch.float32):
    return torch.zeros(mask.shape, dtype=torch.complex64).masked_fill(~mask, -torch.inf)
