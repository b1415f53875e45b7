"""Chapter 12: what a head can and cannot express, and what becomes of tokens under layer after layer."""

import torch


def log_weight_rank(q, k, tolerance=1e-9):
    """The rank of the logarithms of the weights, which is never above d + 1.

    q (Lq, d)   k (Lk, d)   ->   int

    Counts the singular values above `tolerance` times the largest, in float64.
    """
    scores = q.double() @ k.double().T / q.shape[-1] ** 0.5
    values = torch.linalg.svdvals(torch.log_softmax(scores, -1))  # not softmax().log(): weights underflow
    return int((values > tolerance * values[0]).sum())


def permutation_head(perm, sharpness=1e3):
    """Queries and keys with which token i looks at token perm[i].   perm (n,)   ->   (n, n), (n, n)"""
    keys = torch.eye(len(perm), dtype=torch.float64, device=perm.device)  # key j is the j-th unit vector
    return sharpness * keys[perm], keys


def previous_token_head(length, sharpness=1e3):
    """Queries and keys with which token i looks at token i - 1, and token 0 at itself."""
    return permutation_head((torch.arange(length) - 1).clamp(min=0), sharpness)


def rank_collapse(x, depth, skip):
    """How far the tokens are from being all alike, before and after each layer of bare attention.

    x (n, d)   ->   (depth + 1,)
    """
    distances = [_unlikeness(x)]
    for _ in range(depth):
        weights = torch.softmax(x @ x.T / x.shape[-1] ** 0.5, -1)
        x = weights @ x + x if skip else weights @ x
        distances.append(_unlikeness(x))
    return torch.stack(distances)


def _unlikeness(x):
    return (x - x.mean(0)).norm() / x.norm()  # 0 when every token is the same vector
