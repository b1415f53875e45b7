"""One token at a time, also where a product would do."""

import torch
from torch.nn.functional import elu


def run(a, b, v, causal):
    state, norm, rows = 0, 0, []
    if not causal:
        for t in range(b.shape[-2]):
            state = state + b[..., t, :].unsqueeze(-1) * v[..., t, :].unsqueeze(-2)
            norm = norm + b[..., t, :]
        return (a @ state) / (a * norm.unsqueeze(-2)).sum(-1, keepdim=True)
    for t in range(b.shape[-2]):
        state = state + b[..., t, :].unsqueeze(-1) * v[..., t, :].unsqueeze(-2)
        norm = norm + b[..., t, :]
        row = a[..., t, :]
        rows.append((row.unsqueeze(-1) * state).sum(-2) / (row * norm).sum(-1, keepdim=True))
    return torch.stack(rows, -2)


def linear_attention(q, k, v, causal=False):
    return run(elu(q) + 1, elu(k) + 1, v, causal)


def linear_attention_recurrent(q, k, v):
    return run(elu(q) + 1, elu(k) + 1, v, True)


def favor_features(x, W):
    columns = [torch.exp((x * w).sum(-1) - (x * x).sum(-1) / 2) for w in W]
    return torch.stack(columns, -1) / W.shape[0] ** 0.5


def performer(q, k, v, W, causal=False):
    scale = q.shape[-1] ** 0.25
    return run(favor_features(q / scale, W), favor_features(k / scale, W), v, causal)


def linformer(q, k, v, E, F):
    keys = torch.stack([(row[:, None] * k).sum(-2) for row in E], -2)
    values = torch.stack([(row[:, None] * v).sum(-2) for row in F], -2)
    scores = torch.stack([(q * key[..., None, :]).sum(-1) for key in keys.unbind(-2)], -1) / q.shape[-1] ** 0.5
    scores = torch.exp(scores - scores.max(-1, keepdim=True).values)
    return (scores / scores.sum(-1, keepdim=True)) @ values
