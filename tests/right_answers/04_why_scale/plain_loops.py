"""Python loops and the math module; only the entropy stays in PyTorch, for its gradient."""

import math

import torch


def score_variance(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    total = 0.0
    for _ in range(d_k):
        mean_square = (var_q + math.pow(mean_q, 2)) * (var_k + math.pow(mean_k, 2))
        total += mean_square - math.pow(mean_q * mean_k, 2)
    return total


def sample_scores(d_k, samples, generator):
    q = torch.randn(samples, d_k, generator=generator)
    k = torch.randn(samples, d_k, generator=generator)
    scores = torch.zeros(samples)
    for i in range(samples):
        scores[i] = torch.dot(q[i], k[i])
    return scores


def entropy(weights):
    rows = weights.reshape(-1, weights.shape[-1])
    found = []
    for row in rows:
        total = row.new_zeros(())
        for p in row:
            if p > 0:
                total = total - p * p.log()
        found.append(total)
    return torch.stack(found).reshape(weights.shape[:-1])


def dead_rows(weights, threshold=0.99):
    rows = weights.reshape(-1, weights.shape[-1]).tolist()
    return sum(max(row) > threshold for row in rows) / len(rows)
