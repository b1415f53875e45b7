"""The variance from the moments of the whole score; draws in chunks of coordinates are put together afterwards."""

import torch


def score_variance(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    mean = d_k * mean_q * mean_k
    same = d_k * (var_q + mean_q**2) * (var_k + mean_k**2)  # pairs i = j
    cross = d_k * (d_k - 1) * (mean_q * mean_k) ** 2  # pairs i != j
    return same + cross - mean**2


def sample_scores(d_k, samples, generator):
    q = torch.empty(samples, d_k).normal_(generator=generator)
    k = torch.empty(samples, d_k).normal_(generator=generator)
    return torch.linalg.vecdot(q, k)


def entropy(weights):
    total = torch.zeros_like(weights[..., 0])
    for p in weights.unbind(-1):
        total = total + torch.where(p > 0, p * -torch.log(torch.where(p > 0, p, 1.0)), 0.0)
    return total


def dead_rows(weights, threshold=0.99):
    return (weights > threshold).any(-1).to(torch.float32).mean().item()
