"""Index notation throughout, and the layers counted by whole powers."""

import torch


def additive_scores(s, h, Wa, Ua, va):
    asks = torch.einsum("...qs,as->...qa", s, Wa)
    offers = torch.einsum("...kh,ah->...ka", h, Ua)
    return torch.einsum("...qka,a->...qk", torch.tanh(asks[..., :, None, :] + offers[..., None, :, :]), va)


def soft_lookup(q, keys, values, beta=1.0):
    scores = torch.einsum("...qd,...kd->...qk", beta * q, keys)
    return torch.einsum("...qk,...kv->...qv", scores.softmax(-1), values)


def path_and_cost(kind, n, d, k=None):
    match kind:
        case "attention":
            return dict(multiplies=n**2 * d, sequential=1, path=1)
        case "recurrent":
            return dict(multiplies=n * d**2, sequential=n, path=n)
        case "conv":
            return dict(multiplies=k * n * d**2, sequential=1, path=next(p for p in range(64) if k**p >= n))
        case _:
            raise ValueError(kind)
