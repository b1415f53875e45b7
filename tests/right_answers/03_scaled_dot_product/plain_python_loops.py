"""Every index is a loop; numbers leave the tensors for Python wherever no gradient is needed."""

import math

import torch


def attention_loops(q, k, v):
    (n, d), m, e = q.shape, k.shape[0], v.shape[1]
    out = torch.zeros(n, e, dtype=q.dtype)
    for i in range(n):
        scores = [sum(q[i, c].item() * k[j, c].item() for c in range(d)) / math.sqrt(d) for j in range(m)]
        powers = [math.exp(s - max(scores)) for s in scores]
        for c in range(e):
            out[i, c] = sum(p * v[j, c].item() for j, p in enumerate(powers)) / sum(powers)
    return out


def _one_row(query, k, v, allowed, scale):
    seen = [j for j in range(k.shape[0]) if allowed is None or allowed[j]]
    weights = [torch.zeros((), dtype=query.dtype) for _ in range(k.shape[0])]
    if seen:
        scores = [(query * k[j]).sum() * scale for j in seen]
        top = max(score.item() for score in scores)
        powers = [(score - top).exp() for score in scores]
        total = sum(powers)
        for j, power in zip(seen, powers, strict=True):
            weights[j] = power / total
    out = sum(weight * v[j] for j, weight in enumerate(weights))
    return out, torch.stack(weights)


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], k.shape[-2])
    if q.dim() > 2:
        pairs = [
            scaled_dot_product_attention(q[b], k[b], v[b], None if mask is None else mask[b], scale)
            for b in range(q.shape[0])
        ]
    else:
        pairs = [_one_row(q[i], k, v, None if mask is None else mask[i], scale) for i in range(q.shape[0])]
    outs, weights = zip(*pairs, strict=True)
    return torch.stack(outs), torch.stack(weights)


def attention_backward(q, k, v, weights, dout):
    if q.dim() > 2:
        found = [attention_backward(*slices) for slices in zip(q, k, v, weights, dout, strict=True)]
        return tuple(torch.stack(parts) for parts in zip(*found, strict=True))
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for i in range(q.shape[0]):
        dweights = [torch.dot(dout[i], v[j]) for j in range(k.shape[0])]
        inner = sum(weights[i, j] * dweights[j] for j in range(k.shape[0]))
        for j in range(k.shape[0]):
            dscore = weights[i, j] * (dweights[j] - inner) / math.sqrt(q.shape[1])
            dq[i] += dscore * k[j]
            dk[j] += dscore * q[i]
            dv[j] += weights[i, j] * dout[i]
    return dq, dk, dv
