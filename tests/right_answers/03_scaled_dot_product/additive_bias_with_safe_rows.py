"""The mask becomes a bias of 0 and −inf, but a row with nothing allowed gets no bias and is zeroed afterwards."""

import math

import torch


def attention_loops(q, k, v):
    outputs = []
    for query in q:
        total, mixed = 0.0, torch.zeros_like(v[0])
        for key, value in zip(k, v, strict=True):
            power = torch.exp(torch.dot(query, key) / math.sqrt(len(query)))
            total = total + power
            mixed = mixed + power * value
        outputs.append(mixed / total)
    return torch.stack(outputs)


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    scores = torch.matmul(q * scale, k.mT)
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        blind = ~mask.any(dim=-1, keepdim=True)
        bias = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~(mask | blind), -math.inf)
        weights = torch.softmax(scores + bias, dim=-1).masked_fill(blind, 0)
    return torch.matmul(weights, v), weights


def attention_backward(q, k, v, weights, dout):
    dweights = torch.matmul(dout, v.mT)
    dscores = weights * dweights - weights * (weights * dweights).sum(dim=-1, keepdim=True)
    dproducts = dscores / math.sqrt(k.shape[-1])
    return torch.matmul(dproducts, k), torch.matmul(dproducts.mT, q), torch.matmul(weights.mT, dout)
