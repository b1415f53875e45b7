"""Compute in float64 and go back to the caller's dtype at the very end."""

import torch


def attention_loops(q, k, v):
    wide_q, wide_k, wide_v = q.double(), k.double(), v.double()
    rows = [torch.softmax(wide_k @ query / q.shape[1] ** 0.5, 0) @ wide_v for query in wide_q]
    return torch.stack(rows).to(q.dtype)


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    wide_q, wide_k, wide_v = (x.to(torch.float64) for x in (q, k, v))
    scale = wide_q.shape[-1] ** -0.5 if scale is None else float(scale)
    scores = wide_q @ wide_k.transpose(-2, -1) * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(torch.float64).min)
    weights = torch.softmax(scores, -1)
    if mask is not None:
        weights = weights * mask.any(-1, keepdim=True)
    return (weights @ wide_v).to(q.dtype), weights.to(q.dtype)


def attention_backward(q, k, v, weights, dout):
    dtype = q.dtype
    q, k, v, weights, dout = (x.double() for x in (q, k, v, weights, dout))
    dweights = dout @ v.transpose(-2, -1)
    dscores = weights * (dweights - torch.sum(dweights * weights, -1, True)) / q.shape[-1] ** 0.5
    found = dscores @ k, dscores.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ dout
    return tuple(gradient.to(dtype) for gradient in found)
