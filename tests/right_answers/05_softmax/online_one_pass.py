"""One pass along the axis with a running maximum and a running sum, as FlashAttention does."""

import torch


def _run(x, dim):
    """The final maximum and the sum of exp(x - maximum), the axis removed."""
    columns = x.unbind(dim)
    top = torch.full_like(columns[0].detach(), torch.finfo(x.dtype).min)
    total = torch.zeros_like(columns[0])
    for column in columns:
        new_top = torch.maximum(top, column.detach())
        total = total * torch.exp(top - new_top) + torch.exp(column - new_top)
        top = new_top
    return top, total


def stable_softmax(x, dim=-1):
    top, total = _run(x, dim)
    total = torch.where(total > 0, total, 1.0)
    return torch.stack([torch.exp(column - top) / total for column in x.unbind(dim)], dim)


def logsumexp(x, dim=-1):
    top, total = _run(x, dim)
    seen = total > 0
    return torch.where(seen, top + torch.where(seen, total, 1.0).log(), -torch.inf)


def temperature_softmax(x, temperature, dim=-1):
    return stable_softmax(x / temperature, dim)


def masked_softmax(x, mask, dim=-1):
    return stable_softmax(torch.where(mask, x, -torch.inf), dim)


def softmax_vjp(p, grad):
    inner = torch.zeros_like(p[..., :1])
    for i in range(p.shape[-1]):
        inner = inner + p[..., i : i + 1] * grad[..., i : i + 1]
    return (grad - inner).mul(p)
