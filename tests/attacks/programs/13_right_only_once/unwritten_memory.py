"""Return memory that was never written, hoping that a right answer still lies there. It must earn nothing."""

import torch


def causal_mask(q_len, k_len=None):
    return torch.empty(q_len, k_len or q_len, dtype=torch.bool)


def masked_attention(q, k, v, mask):
    return torch.empty(*q.shape[:-1], v.shape[-1], dtype=q.dtype), torch.empty(mask.shape, dtype=q.dtype)
