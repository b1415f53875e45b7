"""Everything from logsumexp: the weights are exp(x - logsumexp(x))."""

import torch

NOTHING = -torch.inf


def logsumexp(x, dim=-1):
    empty = (x == NOTHING).all(dim, keepdim=True)
    x = x.masked_fill(empty, 0.0)
    top = x.amax(dim, keepdim=True)
    result = top + (x - top).exp().sum(dim, keepdim=True).log()
    return result.masked_fill(empty, NOTHING).squeeze(dim)


def stable_softmax(x, dim=-1):
    lse = logsumexp(x, dim).unsqueeze(dim)
    return torch.exp(x - lse.masked_fill(lse == NOTHING, 0.0))


def temperature_softmax(x, temperature, dim=-1):
    cooled = x / temperature
    lse = logsumexp(cooled, dim).unsqueeze(dim)
    return (cooled - lse.nan_to_num(neginf=0.0)).exp()


def masked_softmax(x, mask, dim=-1):
    return stable_softmax(torch.where(mask, x, NOTHING), dim)


def softmax_vjp(p, grad):
    return p * (grad - torch.linalg.vecdot(p, grad).unsqueeze(-1))
