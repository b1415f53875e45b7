"""One query at a time, in plain loops; paths found by breadth-first search."""

import math
from collections import deque

import torch


def longformer_mask(n, window, global_tokens):
    chosen = {int(i) for i in global_tokens}
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        for j in range(n):
            mask[i, j] = abs(i - j) <= window or i in chosen or j in chosen
    return mask


def bigbird_mask(n, window, global_tokens, random_per_row, generator):
    mask = longformer_mask(n, window, global_tokens)
    chosen = {int(i) for i in global_tokens}
    for i in range(n):
        if i in chosen:
            continue
        free = [j for j in range(n) if not mask[i, j]]
        if len(free) < random_per_row:
            raise ValueError("too few free keys")
        for place in torch.randperm(len(free), generator=generator)[:random_per_row].tolist():
            mask[i, free[place]] = True
    return mask


def hops(mask):
    n, sees = len(mask), mask.tolist()
    longest = 0
    for start in range(n):
        steps, queue = {start: 0}, deque([start])
        while queue:
            i = queue.popleft()
            for j in range(n):
                if sees[i][j] and j not in steps:
                    steps[j] = steps[i] + 1
                    queue.append(j)
        if len(steps) < n:
            return -1
        longest = max(longest, *steps.values())
    return longest


def banded_attention(q, k, v, window):
    n, rows = q.shape[-2], []
    for i in range(n):
        low, high = max(0, i - window), min(n, i + window + 1)
        scores = (k[..., low:high, :] @ q[..., i, :, None]).squeeze(-1) / math.sqrt(q.shape[-1])
        weights = torch.softmax(scores, dim=-1)
        rows.append((weights.unsqueeze(-2) @ v[..., low:high, :]).squeeze(-2))
    return torch.stack(rows, dim=-2)
