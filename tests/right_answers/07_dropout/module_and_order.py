"""nn.Dropout when the global generator is asked for; otherwise random ranks against a threshold, scaled by the mean kept."""

import torch
from torch import nn


def attention_dropout(weights, p, training, generator=None):
    if generator is None:
        return nn.Dropout(p).train(training)(weights)
    if not 0 <= p <= 1:
        raise ValueError("p")
    if training:
        dice = torch.randint(0, 2**24, weights.shape, generator=generator, device=weights.device)
        keep = (dice >= p * 2**24).to(weights.dtype)
        weights = weights * keep * (1 / (1 - p) if p != 1 else 0.0)
    return weights


def attention_with_dropout(q, k, v, p, training, mask=None, generator=None):
    scale = torch.tensor(q.shape[-1], dtype=q.dtype, device=q.device).sqrt()
    scores = (q / scale) @ k.transpose(-2, -1)
    allowed = torch.ones((), dtype=torch.bool, device=q.device) if mask is None else mask
    weights = scores.masked_fill(~allowed, torch.finfo(q.dtype).min).softmax(-1).masked_fill(~allowed, 0)
    out = attention_dropout(weights, p, training, generator) @ v
    return out, weights
