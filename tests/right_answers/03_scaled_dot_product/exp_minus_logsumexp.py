"""Weights are exp(scores − logsumexp); torch.where keeps empty rows finite."""

import torch


def attention_loops(q, k, v):
    out = []
    for i in range(q.size(0)):
        scores = torch.tensor([float(q[i].double() @ k[j].double()) for j in range(k.size(0))], dtype=torch.float64)
        scores /= q.size(1) ** 0.5
        alpha = (scores - scores.logsumexp(0)).exp()
        out.append((alpha[:, None] * v.double()).sum(0).to(v.dtype))
    return torch.stack(out)


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    scores = q @ k.transpose(-1, -2) * (scale if scale is not None else q.size(-1) ** -0.5)
    if mask is None:
        weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    else:
        mask = mask.expand(scores.shape)
        usable = mask | ~mask.any(-1, keepdim=True)
        scores = torch.where(usable, scores, -torch.inf)
        weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
        weights = torch.where(mask, weights, torch.zeros_like(weights))
    return weights @ v, weights


def attention_backward(q, k, v, weights, dout):
    out = weights @ v
    # (v_j − out_i) · dout_i is the gradient of weight j less the row's mean
    centred = (dout.unsqueeze(-2) * (v.unsqueeze(-3) - out.unsqueeze(-2))).sum(-1)
    dscores = weights * centred * q.size(-1) ** -0.5
    return dscores @ k, dscores.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ dout
