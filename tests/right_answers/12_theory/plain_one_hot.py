"""The shortest way: unit vectors, log_softmax, matrix_rank."""

import torch
import torch.nn.functional as F


def log_weight_rank(q, k, tolerance=1e-9):
    q, k = q.to(torch.float64), k.to(torch.float64)
    return torch.linalg.matrix_rank(F.log_softmax(q @ k.T / q.size(-1) ** 0.5, dim=-1), rtol=tolerance).item()


def permutation_head(perm, sharpness=1e3):
    k = F.one_hot(torch.arange(len(perm), device=perm.device)).float()
    return sharpness * k[perm], k


def previous_token_head(length, sharpness=1e3):
    return permutation_head(torch.tensor([max(i - 1, 0) for i in range(length)]), sharpness)


def rank_collapse(x, depth, skip):
    out = []
    for layer in range(depth + 1):
        out.append(torch.linalg.norm(x - x.mean(dim=0, keepdim=True)) / torch.linalg.norm(x))
        if layer < depth:
            new = torch.softmax(x @ x.T / x.shape[1] ** 0.5, dim=-1) @ x
            x = x + new if skip else new
    return torch.stack(out)
