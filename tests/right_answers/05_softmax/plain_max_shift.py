"""The textbook way: subtract the row's maximum, and let rows of -inf be shifted by 0 and divided by 1."""

import torch


def stable_softmax(x, dim=-1):
    biggest = x.max(dim=dim, keepdim=True).values
    biggest = torch.where(biggest == -float("inf"), torch.zeros_like(biggest), biggest)
    e = torch.exp(x - biggest)
    z = e.sum(dim=dim, keepdim=True)
    return e / torch.where(z == 0, torch.ones_like(z), z)


def logsumexp(x, dim=-1):
    biggest = x.max(dim=dim).values
    empty = biggest == -float("inf")
    shift = torch.where(empty, torch.zeros_like(biggest), biggest)
    z = torch.exp(x - shift.unsqueeze(dim)).sum(dim=dim)
    z = torch.where(empty, torch.ones_like(z), z)
    return torch.where(empty, biggest.detach(), shift + torch.log(z))


def temperature_softmax(x, temperature, dim=-1):
    return stable_softmax(x / temperature, dim=dim)


def masked_softmax(x, mask, dim=-1):
    return stable_softmax(x.masked_fill(mask.logical_not(), -float("inf")), dim=dim)


def softmax_vjp(p, grad):
    weighted = p * grad
    return weighted - p * weighted.sum(dim=-1, keepdim=True)
