"""Rows in a loop, each with numbers of its own; the fallen entries are filled with 0."""

import torch


def attention_dropout(weights, p, training, generator=None):
    if p < 0 or p > 1:
        raise ValueError("0 <= p <= 1")
    if not training:
        return weights
    rows = []
    for row in weights.reshape(-1, weights.shape[-1]):
        fallen = torch.rand(row.shape, generator=generator, device=row.device) < p
        rows.append((row / (1 - p if p < 1 else 1)).masked_fill(fallen, 0.0))
    return torch.stack(rows).reshape(weights.shape)


def attention_with_dropout(q, k, v, p, training, mask=None, generator=None):
    scores = q @ k.mT * (1 / q.shape[-1]) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    total = torch.logsumexp(scores, -1, keepdim=True)
    weights = torch.exp(scores - total.masked_fill(total == -torch.inf, 0.0))
    return attention_dropout(weights, p, training, generator) @ v, weights
