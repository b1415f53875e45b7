"""Chapter 7: dropping attention weights at random, while training and only then."""

import torch


def attention_dropout(weights, p, training, generator=None):
    """Set each weight to 0 with probability p and scale the others up, so that the expectation stays the same.

    weights (..., Lq, Lk)   ->   the same shape. Not training: the weights as they are.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p must lie between 0 and 1, not {p}")
    if not training:
        return weights
    keep = torch.rand(weights.shape, generator=generator, device=weights.device) >= p
    return surviving(weights, keep, p)


def surviving(weights, keep, p):
    """What dropout leaves once it is known which weights to keep."""
    if p == 1:
        return weights * 0  # 0/0 would be NaN
    return weights * keep / (1 - p)


def attention_with_dropout(q, k, v, p, training, mask=None, generator=None):
    """Mix the values by weights of which some were dropped; the weights are returned as they were before.

    q (..., Lq, d)   k (..., Lk, d)   v (..., Lk, e)   mask (..., Lq, Lk) bool   ->   (..., Lq, e), (..., Lq, Lk)
    """
    weights = attention_weights(q, k, mask)
    return attention_dropout(weights, p, training, generator) @ v, weights


def attention_weights(q, k, mask=None):
    """The softmax over the keys that the mask allows; a query that may look nowhere gets zeros."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is None:
        return torch.softmax(scores, -1)
    somewhere = mask.any(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(~mask & somewhere, -torch.inf), -1).masked_fill(~mask, 0.0)
