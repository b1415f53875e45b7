"""PyTorch's own dropout without a generator, a hand-made one with it."""

import torch
import torch.nn.functional as F


def attention_dropout(weights, p, training, generator=None):
    if generator is None or not training or not 0 < p < 1:
        return F.dropout(weights, p, training)
    fall = torch.bernoulli(torch.full(weights.shape, p, device=weights.device), generator=generator).bool()
    return torch.where(fall, 0, weights / (1 - p))


def attention_with_dropout(q, k, v, p, training, mask=None, generator=None):
    scores = torch.matmul(q, k.mT) / q.shape[-1] ** 0.5
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    blind = ~mask.any(-1, keepdim=True)
    weights = F.softmax(scores.masked_fill(~(mask | blind), float("-inf")), -1) * ~blind
    return torch.matmul(attention_dropout(weights, p, training, generator), v), weights
