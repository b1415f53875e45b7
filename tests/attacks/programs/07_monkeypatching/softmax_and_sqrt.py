"""Break torch.softmax and math.sqrt, so that a reference computed in the same process would be as wrong. It must earn nothing."""

import math

import torch

math.sqrt = lambda x: 1.0
torch.softmax = torch.Tensor.softmax = torch.nn.functional.softmax = lambda x, *args, **kwargs: x * 0
torch.Tensor.masked_fill = lambda self, *args: self


def masked_attention(q, k, v, mask):
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return weights @ v, weights
