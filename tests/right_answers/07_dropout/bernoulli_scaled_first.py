"""A mask of 0 and 1 / (1 − p), drawn by bernoulli in the dtype of the weights."""

import torch


def _scaled_mask(like, p, generator):
    keep = torch.empty_like(like).bernoulli_(1 - p, generator=generator)
    return keep / (1 - p) if p < 1 else keep


def attention_dropout(weights, p, training, generator=None):
    if not 0.0 <= p <= 1.0:
        raise ValueError(p)
    return weights * _scaled_mask(weights, p, generator) if training else weights.clone()


def attention_with_dropout(q, k, v, p, training, mask=None, generator=None):
    if not 0.0 <= p <= 1.0:
        raise ValueError(p)
    scores = torch.einsum("...id,...jd->...ij", q, k) * q.size(-1) ** -0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    if mask is not None:
        weights = torch.where(mask, weights, 0.0)
    used = weights * _scaled_mask(weights, p, generator) if training else weights
    return torch.einsum("...ij,...je->...ie", used, v), weights
