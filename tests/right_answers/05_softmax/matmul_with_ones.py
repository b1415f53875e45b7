"""Sums written as products: a column of ones for the totals, bmm and einsum for the inner product."""

import torch


def _last(x, dim):
    return x.transpose(dim, -1)


def _total(x):
    return x @ torch.ones(x.shape[-1], 1, dtype=x.dtype, device=x.device)


def stable_softmax(x, dim=-1):
    y = _last(x, dim)
    empty = torch.isneginf(y).all(-1, keepdim=True)
    y = y.masked_fill(empty, 0.0)
    e = torch.exp(y - y.max(-1, keepdim=True)[0])
    return _last((e / _total(e)).masked_fill(empty, 0.0), dim)


def logsumexp(x, dim=-1):
    y = x.movedim(dim, -1)
    empty = torch.isneginf(y).all(-1, keepdim=True)
    y = y.masked_fill(empty, 0.0)
    top = y.max(-1, keepdim=True)[0]
    return (top + _total(torch.exp(y - top)).log()).masked_fill(empty, -torch.inf)[..., 0]


def temperature_softmax(x, temperature, dim=-1):
    return stable_softmax(x * (1 / temperature), dim)


def masked_softmax(x, mask, dim=-1):
    return stable_softmax(torch.where(mask, x, torch.full_like(x, -torch.inf)), dim)


def softmax_vjp(p, grad):
    a, b = p.reshape(-1, 1, p.shape[-1]), grad.reshape(-1, p.shape[-1], 1)
    inner = torch.bmm(a, b).reshape(*p.shape[:-1], 1)
    return torch.einsum("...i,...i->...i", p, grad - inner)
