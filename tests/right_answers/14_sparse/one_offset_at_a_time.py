"""A score for each offset, by rolling and masking; a random order of the free keys by argsort."""

import torch


def longformer_mask(n, window, global_tokens):
    mask = torch.zeros(n, n, dtype=torch.bool)
    for offset in range(-min(window, n - 1), min(window, n - 1) + 1):
        mask |= torch.diag(torch.ones(n - abs(offset), dtype=torch.bool), offset)
    tokens = torch.tensor([int(i) for i in global_tokens], dtype=torch.int64)
    return mask.index_fill(0, tokens, True).index_fill(1, tokens, True)


def bigbird_mask(n, window, global_tokens, random_per_row, generator):
    mask = longformer_mask(n, window, global_tokens)
    order = torch.randn(n, n, generator=generator).masked_fill(mask, torch.inf).argsort(-1)
    rank = order.argsort(-1)
    further = (rank < random_per_row) & ~mask
    if any(further[i].sum() < random_per_row for i in range(n) if i not in [int(t) for t in global_tokens]):
        raise ValueError
    return mask | further


def hops(mask):
    know = torch.eye(len(mask), dtype=torch.bool)
    steps = 0
    while True:
        if bool(know.all()):
            return steps
        new = know.clone()
        for i in range(len(mask)):
            new[i] |= know[mask[i]].any(0)
        if bool((new == know).all()):
            return -1
        know, steps = new, steps + 1


def banded_attention(q, k, v, window):
    n = q.shape[-2]
    place = torch.arange(n, device=q.device)
    scores = []
    for offset in range(-window, window + 1):
        score = (q * k.roll(-offset, -2)).sum(-1) / q.shape[-1] ** 0.5
        inside = (place + offset >= 0) & (place + offset < n)
        scores.append(score.masked_fill(~inside, float("-inf")))
    weights = torch.stack(scores, -1).softmax(-1)
    out = 0
    for column, offset in enumerate(range(-window, window + 1)):
        out = out + weights[..., column, None] * v.roll(-offset, -2)
    return out
