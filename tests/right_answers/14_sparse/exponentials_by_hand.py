"""Softmax by hand in float64, gathered rows, a mask that stays where it is told."""

import torch


def longformer_mask(n, window, global_tokens):
    tokens = [int(i) for i in global_tokens]
    return torch.tensor([[abs(i - j) <= window or i in tokens or j in tokens for j in range(n)] for i in range(n)])


def bigbird_mask(n, window, global_tokens, random_per_row, generator):
    mask = longformer_mask(n, window, global_tokens)
    tokens = [int(i) for i in global_tokens]
    for i, row in enumerate(mask):
        if i in tokens:
            continue
        if int((~row).sum()) < random_per_row:
            raise ValueError("no keys left")
        added = 0
        while added < random_per_row:
            j = int(torch.randint(n, (1,), generator=generator))
            if not row[j]:
                row[j] = True
                added += 1
    return mask


def hops(mask):
    n = len(mask)
    reached = torch.eye(n).bool()
    steps = 0
    for _ in range(n):
        if reached.all():
            break
        reached = reached | (mask.int()[:, :, None] * reached.int()[None]).sum(1).bool()
        steps += 1
    return float(steps) if reached.all() else -1


def banded_attention(q, k, v, window):
    n = q.shape[-2]
    index = torch.arange(n, device=q.device)[:, None] + torch.arange(-window, window + 1, device=q.device)
    outside = (index < 0) | (index > n - 1)
    flat = index.clamp(0, n - 1).flatten()
    near_k = k.double().index_select(-2, flat).unflatten(-2, index.shape)
    near_v = v.double().index_select(-2, flat).unflatten(-2, index.shape)
    scores = (q.double().unsqueeze(-2) * near_k).sum(-1) / q.shape[-1] ** 0.5
    scores = torch.where(outside, float("-inf"), scores)
    votes = torch.exp(scores - scores.amax(-1, keepdim=True))
    return ((votes / votes.sum(-1, keepdim=True)).unsqueeze(-1) * near_v).sum(-2).to(q.dtype)
