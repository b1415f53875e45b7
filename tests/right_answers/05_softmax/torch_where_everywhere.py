"""One private helper with torch.where guards, keyword arguments everywhere, and matmul for the inner product."""

import torch


def _parts(x, allowed, dim):
    any_allowed = allowed.any(dim=dim, keepdim=True)
    x = torch.where(allowed, x, torch.tensor(-torch.inf, dtype=x.dtype, device=x.device))
    x = torch.where(any_allowed, x, torch.zeros_like(x))
    top = torch.amax(x, dim=dim, keepdim=True)
    powers = torch.exp(x - top)
    return any_allowed, top, powers, torch.sum(powers, dim=dim, keepdim=True)


def stable_softmax(x, dim=-1):
    any_allowed, _, powers, total = _parts(x, x > -torch.inf, dim)
    return torch.where(any_allowed, powers / total, torch.zeros_like(powers))


def logsumexp(x, dim=-1):
    any_allowed, top, _, total = _parts(x, x > -torch.inf, dim)
    result = torch.where(any_allowed, top + torch.log(total), torch.full_like(total, -torch.inf))
    return torch.squeeze(result, dim)


def temperature_softmax(x, temperature, dim=-1):
    any_allowed, _, powers, total = _parts(x / temperature, x > -torch.inf, dim)
    return torch.where(any_allowed, powers / total, torch.zeros_like(powers))


def masked_softmax(x, mask, dim=-1):
    any_allowed, _, powers, total = _parts(x, torch.broadcast_to(mask, x.shape), dim)
    return torch.where(any_allowed, powers / total, torch.zeros_like(powers))


def softmax_vjp(p, grad):
    inner = (p.unsqueeze(-2) @ grad.unsqueeze(-1)).squeeze(-1)
    return p * (grad - inner)
