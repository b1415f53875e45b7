"""Two-dimensional positions on a circle, float32, both sides sharpened by the square root."""

import math

import torch


def log_weight_rank(q, k, tolerance=1e-9):
    scores = torch.einsum("id,jd->ij", q.double(), k.double()) / math.sqrt(q.shape[-1])
    logs = scores - torch.logsumexp(scores, dim=1, keepdim=True)
    s = torch.linalg.svd(logs, full_matrices=False).S
    return int(torch.count_nonzero(s / s.max() > tolerance))


def circle(n, device=None):
    angle = 2 * math.pi * torch.arange(n, device=device) / n
    return torch.stack((angle.cos(), angle.sin()), dim=1)


def permutation_head(perm, sharpness=1e3):
    places = circle(len(perm), perm.device) * math.sqrt(sharpness)
    return places[perm], places


def previous_token_head(length, sharpness=1e3):
    places = circle(length)
    q = sharpness * places.roll(1, dims=0)
    q[0] = sharpness * places[0]
    return q, places


def rank_collapse(x, depth, skip):
    distances = x.new_empty(depth + 1)
    y = x.clone()
    for layer in range(depth + 1):
        centred = y - y.mean(0)
        distances[layer] = torch.sqrt((centred**2).sum() / (y**2).sum())
        weights = torch.exp(torch.log_softmax(y @ y.T / math.sqrt(y.shape[-1]), -1))
        y = torch.addmm(y, weights, y) if skip else weights @ y
    return distances
