"""Works with standard deviations; batched matrix products; clamps inside the logarithm only."""

import math

import torch


def score_variance(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    sigma_q, sigma_k = math.sqrt(var_q), math.sqrt(var_k)
    return d_k * ((sigma_q * sigma_k) ** 2 + (mean_q * sigma_k) ** 2 + (mean_k * sigma_q) ** 2)


def sample_scores(d_k, samples, generator):
    q = torch.randn(samples, d_k, generator=generator)
    k = torch.randn(samples, d_k, generator=generator)
    return torch.bmm(q[:, None, :], k[:, :, None])[:, 0, 0]


def entropy(weights):
    logs = weights.clamp(min=1e-12).log()
    return -(weights.unsqueeze(-2) @ logs.unsqueeze(-1)).squeeze(-1).squeeze(-1)


def dead_rows(weights, threshold=0.99):
    largest = weights.sort(dim=-1, descending=True).values[..., 0]
    dead = largest.gt(threshold)
    return dead.sum().item() / dead.numel()
