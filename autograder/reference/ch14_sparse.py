"""Chapter 14: look at few keys, and still reach everyone."""

import torch


def longformer_mask(n, window, global_tokens):
    """Neighbours see each other; a global token sees everyone and is seen by everyone.   ->   (n, n) bool"""
    tokens = torch.as_tensor(global_tokens, dtype=torch.long)
    place = torch.arange(n, device=tokens.device)
    chosen = torch.isin(place, tokens)
    near = (place[:, None] - place).abs() <= window
    return near | chosen[:, None] | chosen


def bigbird_mask(n, window, global_tokens, random_per_row, generator):
    """Longformer's mask and, in each row of a token that is not global, `random_per_row` further keys drawn at random."""
    mask = longformer_mask(n, window, global_tokens)
    ordinary = torch.ones(n, dtype=torch.bool, device=mask.device)
    ordinary[torch.as_tensor(global_tokens, dtype=torch.long)] = False
    if ((~mask).sum(-1) < random_per_row)[ordinary].any():
        raise ValueError(f"some token has fewer than {random_per_row} keys left to draw from")
    luck = torch.rand(n, n, generator=generator, device=generator.device).to(mask.device)
    luck = luck.masked_fill(mask, -1.0)  # what is seen already is never drawn
    drawn = luck.topk(min(random_per_row, n), -1).indices
    further = torch.zeros_like(mask).scatter(-1, drawn, True)
    return mask | further & ordinary[:, None]


def hops(mask):
    """The steps after which every token can have heard from every other; -1 if some never do.

    mask (n, n) bool, True where row may look at column. A token keeps what it knows from step to step (the residual).
    """
    n = len(mask)
    reached = torch.eye(n, dtype=torch.bool, device=mask.device)
    step = (mask | reached).double()
    for steps in range(n):
        if reached.all():
            return steps
        reached = step @ reached.double() > 0
    return -1


def banded_attention(q, k, v, window):
    """Attend to the keys at most `window` places away, and touch no others.

    q, k (..., n, d)   v (..., n, e)   ->   (..., n, e)
    """
    n, offsets = q.shape[-2], torch.arange(-window, window + 1, device=q.device)
    place = torch.arange(n, device=q.device)[:, None] + offsets  # (n, 2w+1): the keys around each query
    beyond = (place < 0) | (place >= n)
    place = place.clamp(0, n - 1)
    scores = torch.einsum("...nd,...nwd->...nw", q, k[..., place, :]) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(beyond, -torch.inf), -1)
    return torch.einsum("...nw,...nwe->...ne", weights, v[..., place, :])
