"""Each formula as it stands in the chapter."""

import torch


def score_variance(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return d_k * (var_q * var_k + mean_q**2 * var_k + mean_k**2 * var_q)


def sample_scores(d_k, samples, generator):
    q = torch.randn(samples, d_k, generator=generator)
    k = torch.randn(samples, d_k, generator=generator)
    return torch.sum(q * k, dim=1)


def entropy(weights):
    return torch.where(weights > 0, -weights * torch.log(weights), 0.0).sum(dim=-1)


def dead_rows(weights, threshold=0.99):
    return (weights.max(dim=-1).values > threshold).float().mean().item()
