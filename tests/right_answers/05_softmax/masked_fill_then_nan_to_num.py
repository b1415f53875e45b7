"""Let the empty row become NaN, wipe it away, and let masked_fill keep the NaN out of the gradient."""

import torch


def masked_softmax(x, mask, dim=-1):
    scores = x.masked_fill(~mask, -torch.inf)
    e = torch.exp(scores - scores.max(dim, keepdim=True).values)
    return torch.nan_to_num(e / e.sum(dim, keepdim=True), nan=0.0)


def stable_softmax(x, dim=-1):
    return masked_softmax(x, ~torch.isneginf(x), dim)


def logsumexp(x, dim=-1):
    x = x.masked_fill(torch.isneginf(x), -torch.inf)
    top = x.max(dim, keepdim=True).values
    lse = top.squeeze(dim) + torch.exp(x - top).sum(dim).log()
    return torch.nan_to_num(lse, nan=-torch.inf)


def temperature_softmax(x, temperature, dim=-1):
    return masked_softmax(x / temperature, x > -torch.inf, dim)


def softmax_vjp(p, grad):
    return p * grad - p * torch.sum(p * grad, -1, keepdim=True)
