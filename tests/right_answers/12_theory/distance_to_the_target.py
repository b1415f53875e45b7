"""Scores fall with the squared distance: 2ij - j², a head of width two without any trigonometry."""

import numpy as np
import torch


def log_weight_rank(q, k, tolerance=1e-9):
    q, k = q.detach().double().cpu().numpy(), k.detach().double().cpu().numpy()
    scores = q @ k.T / np.sqrt(q.shape[1])
    scores = scores - scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    sizes = np.linalg.svd(logs, compute_uv=False)
    return int(np.sum(sizes > tolerance * sizes[0]))


def near(targets, sharpness):
    j = torch.arange(len(targets), dtype=torch.float64, device=targets.device)
    i = targets.to(torch.float64)
    q = sharpness * torch.stack([2 * i, -torch.ones_like(i)], dim=-1)
    return q, torch.stack([j, j**2], dim=-1)


def permutation_head(perm, sharpness=1e3):
    return near(perm, sharpness)


def previous_token_head(length, sharpness=1e3):
    return near(torch.arange(length).sub(1).clamp_min(0), sharpness)


def rank_collapse(x, depth, skip):
    def ratio(y):
        return torch.linalg.matrix_norm(y - y.mean(0)) / torch.linalg.matrix_norm(y)

    def layer(y):
        a = torch.softmax((y @ y.mT).div(y.shape[-1] ** 0.5), dim=1)
        return a @ y + int(bool(skip)) * y

    states = [x]
    for _ in range(depth):
        states.append(layer(states[-1]))
    return torch.stack([ratio(y) for y in states])
