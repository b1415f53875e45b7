"""Short forms; a generator expression for the paths; each block computed again in the backward pass."""

import torch
from torch.utils.checkpoint import checkpoint


def longformer_mask(n, window, global_tokens):
    place = torch.arange(n)
    chosen = (place[:, None] == torch.as_tensor(global_tokens)).any(-1)
    return torch.abs(place[None] - place[:, None]).le(window).logical_or(chosen).logical_or(chosen[:, None])


def bigbird_mask(n, window, global_tokens, random_per_row, generator):
    mask = longformer_mask(n, window, global_tokens)
    chosen = (torch.arange(n)[:, None] == torch.as_tensor(global_tokens)).any(-1)
    free = ~mask
    if free[~chosen].sum(-1).lt(random_per_row).any():
        raise ValueError("random_per_row is too large")
    if random_per_row:
        luck = torch.rand(n, n, generator=generator) * free
        least = luck.sort(-1, descending=True).values[:, random_per_row - 1, None]
        mask = mask | ((luck >= least) & free)
    return mask


def hops(mask):
    n = len(mask)
    sees = [{i, *mask[i].nonzero().flatten().tolist()} for i in range(n)]
    known = [{i} for i in range(n)]
    for steps in range(n):
        if all(len(k) == n for k in known):
            return steps
        known = [set().union(*(known[j] for j in sees[i])) for i in range(n)]
    return -1


def _block(q, k, v, far):
    return (q @ k.mT / q.size(-1) ** 0.5).masked_fill(far, -torch.inf).softmax(-1) @ v


def banded_attention(q, k, v, window, block=32):
    n, out = q.size(-2), []
    for a in range(0, n, block):
        b, low = min(a + block, n), max(a - window, 0)
        high = min(b + window, n)
        far = (torch.arange(a, b)[:, None] - torch.arange(low, high)).abs() > window
        pieces = q[..., a:b, :], k[..., low:high, :], v[..., low:high, :], far.to(q.device)
        out.append(checkpoint(_block, *pieces, use_reentrant=False))
    return torch.cat(out, -2)
