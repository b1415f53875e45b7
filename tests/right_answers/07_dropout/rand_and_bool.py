"""Uniform numbers compared with p; one function leans on the other."""

import math

import torch


def attention_dropout(weights, p, training, generator=None):
    if p < 0 or p > 1:
        raise ValueError("p is a probability")
    if not training or p == 0:
        return weights
    if p == 1:
        return torch.zeros_like(weights)
    keep = torch.rand(weights.shape, generator=generator, device=weights.device) > p
    return weights * keep / (1 - p)


def attention_with_dropout(q, k, v, p, training, mask=None, generator=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
    return attention_dropout(weights, p, training, generator) @ v, weights
