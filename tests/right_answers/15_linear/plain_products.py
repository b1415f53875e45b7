"""Matrix products, and cumulative sums for the causal case."""

import torch
import torch.nn.functional as nnf


def attend(a, b, v, causal):
    if causal:
        s = torch.cumsum(b.unsqueeze(-1) * v.unsqueeze(-2), dim=-3)
        z = torch.cumsum(b, dim=-2)
        return (a.unsqueeze(-2) @ s).squeeze(-2) / (a * z).sum(-1, keepdim=True)
    s = b.transpose(-1, -2) @ v
    z = b.sum(dim=-2, keepdim=True).transpose(-1, -2)
    return (a @ s) / (a @ z)


def linear_attention(q, k, v, causal=False):
    return attend(nnf.elu(q) + 1, nnf.elu(k) + 1, v, causal)


def linear_attention_recurrent(q, k, v):
    a, b = nnf.elu(q) + 1, nnf.elu(k) + 1
    s = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=v.dtype, device=v.device)
    z = torch.zeros(*k.shape[:-2], k.shape[-1], dtype=v.dtype, device=v.device)
    out = []
    for t in range(q.shape[-2]):
        s = s + b[..., t, :, None] * v[..., t, None, :]
        z = z + b[..., t, :]
        top = (a[..., t, None, :] @ s).squeeze(-2)
        out.append(top / (a[..., t, :] * z).sum(-1, keepdim=True))
    return torch.stack(out, dim=-2)


def favor_features(x, W):
    r = W.shape[0]
    return torch.exp(x @ W.T - x.pow(2).sum(-1, keepdim=True) / 2) / r**0.5


def performer(q, k, v, W, causal=False):
    d = q.shape[-1]
    return attend(favor_features(q / d**0.25, W), favor_features(k / d**0.25, W), v, causal)


def linformer(q, k, v, E, F):
    scores = q @ (E @ k).transpose(-1, -2) / q.shape[-1] ** 0.5
    return scores.softmax(-1) @ (F @ v)
