"""Padding and `unfold`; paths by squaring and bisection."""

import torch
import torch.nn.functional as F


def longformer_mask(n, window, global_tokens):
    mask = torch.ones(n, n, dtype=torch.bool).tril(window).triu(-window)
    for i in global_tokens:
        mask[i, :] = True
        mask[:, i] = True
    return mask


def bigbird_mask(n, window, global_tokens, random_per_row, generator):
    mask = longformer_mask(n, window, global_tokens)
    for i in set(range(n)) - {int(t) for t in global_tokens}:
        free = (~mask[i]).nonzero().flatten()
        if len(free) < random_per_row:
            raise ValueError(f"row {i} has only {len(free)} free keys")
        order = torch.rand(len(free), generator=generator).argsort()
        mask[i, free[order[:random_per_row]]] = True
    return mask


def hops(mask):
    n = mask.shape[0]
    apart = torch.full((n, n), float("inf"))
    apart[mask] = 1
    apart.fill_diagonal_(0)
    for middle in range(n):
        apart = torch.minimum(apart, apart[:, middle, None] + apart[middle])
    return -1 if apart.max().isinf() else int(apart.max())


def banded_attention(q, k, v, window):
    n, d = q.shape[-2:]
    width = 2 * window + 1
    near_k = F.pad(k, (0, 0, window, window)).unfold(-2, width, 1)  # [..., n, d, 2w+1]
    near_v = F.pad(v, (0, 0, window, window)).unfold(-2, width, 1)  # [..., n, e, 2w+1]
    real = F.pad(torch.ones(n, dtype=torch.bool, device=q.device), (window, window)).unfold(0, width, 1)
    scores = torch.einsum("...nd,...ndw->...nw", q, near_k) / d**0.5
    scores = scores.masked_fill(~real, torch.finfo(q.dtype).min)
    return torch.einsum("...nw,...new->...ne", scores.softmax(-1), near_v)
