"""Chapter 4: how large dot products get, and what that does to the weights."""

import torch


def score_variance(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    """Var[q·k] for `d_k` independent coordinates with these variances and means."""
    return d_k * (var_q * var_k + mean_q**2 * var_k + mean_k**2 * var_q)


def sample_pairs(d_k, samples, generator):
    """First all queries, then all keys.   ->   (samples, d_k), (samples, d_k)"""
    q = torch.randn(samples, d_k, generator=generator, device=generator.device)
    k = torch.randn(samples, d_k, generator=generator, device=generator.device)
    return q, k


def sample_scores(d_k, samples, generator):
    """The dot product of each query with the key of the same row.   ->   (samples,)"""
    q, k = sample_pairs(d_k, samples, generator)
    return (q * k).sum(-1)


def entropy(weights):
    """How spread out each row is, in nats.   weights (..., n)   ->   (...)

    A weight of 0 adds nothing, so a row of zeros has entropy 0.
    """
    return -torch.xlogy(weights, weights).sum(-1)


def dead_rows(weights, threshold=0.99):
    """The share of rows in which one weight exceeds the threshold.   weights (..., n)   ->   float"""
    return (weights.amax(-1) > threshold).double().mean().item()
