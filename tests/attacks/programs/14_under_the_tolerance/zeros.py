"""Zeros of the right shape and dtype for everything. It must earn nothing."""

import torch


def causal_mask(q_len, k_len=None):
    return torch.zeros(q_len, k_len or q_len, dtype=torch.bool)


def padding_mask(lengths, max_len):
    return torch.zeros(len(lengths), 1, 1, max_len, dtype=torch.bool)


def to_additive(mask, dtype=torch.float32):
    return torch.zeros(mask.shape, dtype=dtype)


def masked_attention(q, k, v, mask):
    weights = torch.zeros(*q.shape[:-1], k.shape[-2], dtype=q.dtype, requires_grad=True) * q.sum()
    return weights @ v, weights
