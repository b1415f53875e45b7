"""Right at the first call, wrong at every later one. It must not get full marks."""
# loses a promise of: causal_mask

import torch

calls = []


def causal_mask(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    calls.append(1)
    mask = torch.arange(k_len) <= torch.arange(q_len)[:, None] + (k_len - q_len)
    return mask if len(calls) == 1 else ~mask
