"""The scale as a tensor, which PyTorch makes in float32."""

import torch


def attention_loops(q, k, v):
    scale = torch.sqrt(torch.tensor(q.size(-1), dtype=torch.float32))
    rows = []
    for query in q:
        scores = torch.stack([torch.dot(query, key) for key in k]) / scale
        weights = torch.softmax(scores, dim=0)
        rows.append(sum(weight * value for weight, value in zip(weights, v, strict=True)))
    return torch.stack(rows)


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    scores = torch.matmul(q, k.transpose(-2, -1))
    scores = scores / torch.sqrt(torch.tensor(q.size(-1))) if scale is None else scores * scale
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0)
    return torch.matmul(weights, v), weights


def attention_backward(q, k, v, weights, dout):
    root = torch.sqrt(torch.tensor(float(q.size(-1))))
    dv = torch.matmul(weights.transpose(-2, -1), dout)
    dweights = torch.matmul(dout, v.transpose(-2, -1))
    dscores = weights * (dweights - torch.sum(dweights * weights, dim=-1, keepdim=True)) / root
    return torch.matmul(dscores, k), torch.matmul(dscores.transpose(-2, -1), q), dv
