"""Overlapping chunks as in Longformer's own code: [chunks, c] queries against [chunks, 3c] keys."""

import torch
import torch.nn.functional as F


def longformer_mask(n, window, global_tokens):
    chosen = torch.zeros(n, dtype=torch.bool)
    for i in global_tokens:
        chosen[i] = True
    place = torch.arange(n, dtype=torch.float32)
    return (torch.cdist(place[:, None], place[:, None], p=1) <= window) | chosen.view(-1, 1) | chosen.view(1, -1)


def bigbird_mask(n, window, global_tokens, random_per_row, generator):
    mask = longformer_mask(n, window, global_tokens)
    wanted = random_per_row * (~torch.isin(torch.arange(n), torch.tensor([int(i) for i in global_tokens]))).long()
    if ((~mask).sum(1) < wanted).any():
        raise ValueError("more random keys than there are")
    for i in torch.arange(n)[wanted > 0]:
        shuffled = torch.randperm(n, generator=generator)
        mask[i, shuffled[~mask[i][shuffled]][:random_per_row]] = True
    return mask


def hops(mask):
    n = len(mask)
    step = mask.to(torch.float64) + torch.eye(n, dtype=torch.float64)
    reach = torch.eye(n, dtype=torch.float64)
    for steps in range(n):
        if (reach > 0).all():
            return steps
        reach = (reach @ step).clamp(max=1.0)
    return -1


def banded_attention(q, k, v, window):
    *lead, n, d = q.shape
    c = max(window, 1)
    chunks = -(-n // c)
    fill = chunks * c - n
    queries = F.pad(q, (0, 0, 0, fill)).reshape(*lead, chunks, c, d)

    def around(x):
        padded = F.pad(x, (0, 0, c, fill + c)).contiguous()
        strides = padded.stride()
        shape = (*lead, chunks, 3 * c, x.shape[-1])
        return padded.as_strided(shape, (*strides[:-2], c * strides[-2], strides[-2], strides[-1]))

    scores = queries @ around(k).transpose(-1, -2) / d**0.5  # [..., chunks, c, 3c]
    i = torch.arange(chunks * c, device=q.device).reshape(chunks, c, 1)
    j = torch.arange(chunks, device=q.device)[:, None, None] * c - c + torch.arange(3 * c, device=q.device)
    allowed = ((i - j).abs() <= window) & (j >= 0) & (j < n)
    weights = torch.nan_to_num(scores.masked_fill(~allowed, -torch.inf).softmax(-1))
    return (weights @ around(v)).reshape(*lead, chunks * c, -1)[..., :n, :]
