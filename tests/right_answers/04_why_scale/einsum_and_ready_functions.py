"""einsum, torch.special.entr, count_nonzero."""

import torch


def score_variance(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return float(d_k) * ((var_q + mean_q * mean_q) * (var_k + mean_k * mean_k) - mean_q * mean_q * mean_k * mean_k)


def sample_scores(d_k, samples, generator):
    q, k = (torch.randn((samples, d_k), generator=generator, device=generator.device) for _ in range(2))
    return torch.einsum("nd,nd->n", q, k)


def entropy(weights):
    return torch.special.entr(weights).sum(-1)


def dead_rows(weights, threshold=0.99):
    peaks = weights.amax(-1)
    return torch.count_nonzero(peaks > threshold).item() / peaks.numel()
