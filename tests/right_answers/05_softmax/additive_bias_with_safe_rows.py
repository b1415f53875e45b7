"""The mask becomes a bias of 0 and -inf, but rows with nothing allowed get a bias of 0 and are zeroed at the end."""

import torch


def _bias(allowed, dtype, dim):
    usable = allowed.any(dim, keepdim=True)
    bias = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    bias[~allowed & usable.expand_as(allowed)] = -torch.inf
    return bias, usable


def masked_softmax(x, mask, dim=-1):
    allowed = mask.broadcast_to(x.shape)
    bias, usable = _bias(allowed, x.dtype, dim)
    scores = x + bias
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return torch.where(usable, e / e.sum(dim, keepdim=True), 0.0)


def stable_softmax(x, dim=-1):
    finite = torch.isfinite(x)
    return masked_softmax(torch.where(finite, x, 0.0), finite, dim)


def logsumexp(x, dim=-1):
    finite = torch.isfinite(x)
    bias, usable = _bias(finite, x.dtype, dim)
    scores = torch.where(finite, x, 0.0) + bias
    top = scores.amax(dim, keepdim=True)
    lse = top + torch.log(torch.exp(scores - top).sum(dim, keepdim=True))
    return torch.where(usable, lse, -torch.inf).squeeze(dim)


def temperature_softmax(x, temperature, dim=-1):
    return stable_softmax(torch.div(x, temperature), dim)


def softmax_vjp(p, grad):
    return torch.addcmul(torch.zeros_like(p), p, grad - (p * grad).sum(-1).unsqueeze(-1))
