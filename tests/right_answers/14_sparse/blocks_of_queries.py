"""Blocks of queries against the slice of keys they can reach."""

import torch

BLOCK = 64


def longformer_mask(n, window, global_tokens):
    i, j = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    tokens = torch.as_tensor(global_tokens).long()
    return ((i - j).abs() <= window) | torch.isin(i, tokens) | torch.isin(j, tokens)


def bigbird_mask(n, window, global_tokens, random_per_row, generator):
    mask = longformer_mask(n, window, global_tokens)
    tokens = torch.as_tensor(global_tokens).long()
    rows = torch.tensor([i for i in range(n) if i not in tokens.tolist()])
    if len(rows) == 0 or random_per_row == 0:
        return mask
    free = (~mask[rows]).double()
    if (free.sum(-1) < random_per_row).any():
        raise ValueError("not enough keys")
    keys = torch.multinomial(free, random_per_row, replacement=False, generator=generator)
    mask[rows[:, None], keys] = True
    return mask


def hops(mask):
    n = len(mask)
    if n == 1:
        return 0
    step = mask | torch.eye(n, dtype=torch.bool)
    reach, steps = step.clone(), 1
    while not reach.all():
        further = (reach.float() @ step.float()).bool()
        if torch.equal(further, reach):
            return -1
        reach, steps = further, steps + 1
    return steps


def banded_attention(q, k, v, window):
    n, place, pieces = q.shape[-2], torch.arange(q.shape[-2], device=q.device), []
    for start in range(0, n, BLOCK):
        end = min(start + BLOCK, n)
        low, high = max(0, start - window), min(n, end + window)
        scores = q[..., start:end, :] @ k[..., low:high, :].mT * q.shape[-1] ** -0.5
        far = (place[start:end, None] - place[low:high]).abs() > window
        pieces.append(scores.masked_fill(far, -torch.inf).softmax(-1) @ v[..., low:high, :])
    return torch.cat(pieces, -2)
