"""Exact fractions; NaN cleaned away before the sum; a mean in the dtype of the weights."""

from fractions import Fraction

import torch


def score_variance(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    vq, vk, mq, mk = (Fraction(x) for x in (var_q, var_k, mean_q, mean_k))
    return float(d_k * (vq * (vk + mk**2) + vk * mq**2))


def sample_scores(d_k, samples, generator):
    q = torch.normal(0.0, 1.0, (samples, d_k), generator=generator)
    k = torch.normal(0.0, 1.0, (samples, d_k), generator=generator)
    return q.mul_(k).sum(-1)


def entropy(weights):
    terms = weights * torch.log(weights)
    return torch.nan_to_num(terms, nan=0.0).sum(-1).neg()


def dead_rows(weights, threshold=0.99):
    rows = weights.flatten(end_dim=-2) if weights.ndim > 1 else weights[None]
    peaks, _ = rows.topk(1, dim=-1)
    return (peaks[:, 0] > threshold).to(weights.dtype).mean().item()
