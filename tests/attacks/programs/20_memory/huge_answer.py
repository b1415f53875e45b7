"""Return a tensor far too large to be an answer, and one that only looks large. Neither may be read."""

import torch


def causal_mask(q_len, k_len=None):
    return torch.zeros(200 * 2**20, dtype=torch.bool)


def padding_mask(lengths, max_len):
    return torch.zeros(1, dtype=torch.bool).expand(2**20, 2**20)
