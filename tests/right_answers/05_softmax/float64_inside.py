"""All the arithmetic in float64, the result cast back to the dtype that came in."""

import torch


def _weights(x, dim):
    allowed = x != float("-inf")
    x = x.where(allowed, 0.0)
    top = x.masked_fill(~allowed, torch.finfo(x.dtype).min).amax(dim, keepdim=True)
    e = (x - top).clamp(max=0.0).exp() * allowed
    return e / e.sum(dim, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)


def stable_softmax(x, dim=-1):
    return _weights(x.double(), dim).to(x.dtype)


def logsumexp(x, dim=-1):
    y = x.double()
    empty = torch.isneginf(y).all(dim)
    y = torch.where(empty.unsqueeze(dim), 0.0, y)
    top = y.detach().amax(dim)
    out = top + torch.log(torch.exp(y - top.unsqueeze(dim)).sum(dim))
    return torch.where(empty, float("-inf"), out).to(x.dtype)


def temperature_softmax(x, temperature, dim=-1):
    return _weights(x.double() / temperature, dim).to(x.dtype)


def masked_softmax(x, mask, dim=-1):
    return _weights(torch.where(mask, x.double(), float("-inf")), dim).to(x.dtype)


def softmax_vjp(p, grad):
    wide, back = p.double(), grad.double()
    inner = torch.einsum("...i,...i->...", wide, back)
    return (wide * (back - inner[..., None])).to(p.dtype)
