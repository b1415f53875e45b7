"""Off by one part in a hundred thousand, which an absolute tolerance would let pass. It must lose its marks for values."""
# loses a promise of: masked_attention

import torch


def masked_attention(q, k, v, mask):
    weights = torch.softmax((q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -1e9), -1).masked_fill(~mask, 0)
    weights = weights * (1 + 1e-5)
    return weights @ v, weights
