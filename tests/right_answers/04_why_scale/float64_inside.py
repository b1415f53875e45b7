"""All the arithmetic in float64, the result cast back to the dtype that came in."""

import torch


def score_variance(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    vq, vk, mq, mk = torch.tensor([var_q, var_k, mean_q, mean_k], dtype=torch.float64)
    return (d_k * vq * vk + d_k * mq.square() * vk + d_k * mk.square() * vq).item()


def sample_scores(d_k, samples, generator):
    q = torch.randn(samples, d_k, generator=generator)
    k = torch.randn(samples, d_k, generator=generator)
    return (q.double() * k.double()).sum(-1).float()


def entropy(weights):
    p = weights.double()
    return -(p * p.clamp_min(torch.finfo(torch.float64).tiny).log()).sum(-1).to(weights.dtype)


def dead_rows(weights, threshold=0.99):
    return float((weights.double().max(-1)[0] > threshold).double().mean())
