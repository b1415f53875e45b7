"""Index by index: the axis goes last, the rows are walked one by one, each with Python's own loop and sum."""

import math

import torch


def _rows(x, dim):
    moved = x.movedim(dim, -1)
    return moved.reshape(-1, moved.shape[-1]), moved.shape


def _weights_of_row(row):
    top = max(row.tolist())
    if top == -math.inf:
        return row.new_zeros(row.shape)
    powers = [torch.exp(value - top) for value in row]
    total = sum(powers)
    return torch.stack([power / total for power in powers])


def _lse_of_row(row):
    top = max(row.tolist())
    if top == -math.inf:
        return row.new_full((), -math.inf)
    return torch.log(sum(torch.exp(value - top) for value in row)) + top


def stable_softmax(x, dim=-1):
    rows, shape = _rows(x, dim)
    return torch.stack([_weights_of_row(row) for row in rows]).reshape(shape).movedim(-1, dim)


def logsumexp(x, dim=-1):
    rows, shape = _rows(x, dim)
    return torch.stack([_lse_of_row(row) for row in rows]).reshape(shape[:-1])


def temperature_softmax(x, temperature, dim=-1):
    rows, shape = _rows(x, dim)
    return torch.stack([_weights_of_row(row / temperature) for row in rows]).reshape(shape).movedim(-1, dim)


def masked_softmax(x, mask, dim=-1):
    rows, shape = _rows(x, dim)
    allowed, _ = _rows(mask.expand(x.shape), dim)
    done = []
    for row, may in zip(rows, allowed, strict=True):
        inside = [i for i in range(len(row)) if may[i]]
        weights = [row.new_zeros(()) for _ in row]
        if inside:
            top = max(row[inside].tolist())
            powers = {i: torch.exp(row[i] - top) for i in inside}
            total = sum(powers.values())
            for i in inside:
                weights[i] = powers[i] / total
        done.append(torch.stack(weights))
    return torch.stack(done).reshape(shape).movedim(-1, dim)


def softmax_vjp(p, grad):
    done = []
    for p_row, g_row in zip(p.reshape(-1, p.shape[-1]), grad.reshape(-1, p.shape[-1]), strict=True):
        inner = sum(a * b for a, b in zip(p_row, g_row, strict=True))
        done.append(torch.stack([a * (b - inner) for a, b in zip(p_row, g_row, strict=True)]))
    return torch.stack(done).reshape(p.shape)
