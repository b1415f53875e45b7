"""The normaliser rides along as one more value that is always 1; features by cases."""

import torch


def phi(x):
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def mix(a, b, v, causal):
    v = torch.cat([v, torch.ones_like(v[..., :1])], -1)
    if causal:
        both = torch.einsum("...nd,...nde->...ne", a, torch.einsum("...nd,...ne->...nde", b, v).cumsum(-3))
    else:
        both = torch.einsum("...nd,...de->...ne", a, torch.einsum("...nd,...ne->...de", b, v))
    return both[..., :-1] / both[..., -1:]


def linear_attention(q, k, v, causal=False):
    return mix(phi(q), phi(k), v, causal)


def linear_attention_recurrent(q, k, v):
    v = torch.cat([v, torch.ones_like(v[..., :1])], -1)
    state, rows = torch.zeros_like(k[..., 0, :, None] * v[..., 0, None, :]), []
    for a, b, value in zip(phi(q).unbind(-2), phi(k).unbind(-2), v.unbind(-2), strict=True):
        state = state + b[..., None] * value[..., None, :]
        rows.append((a[..., None] * state).sum(-2))
    both = torch.stack(rows, -2)
    return both[..., :-1] / both[..., -1:]


def favor_features(x, W):
    return (
        torch.exp(torch.einsum("...d,rd->...r", x, W)) * torch.exp(-(x * x).sum(-1, keepdim=True) / 2) / len(W) ** 0.5
    )


def performer(q, k, v, W, causal=False):
    d = q.shape[-1]
    return mix(favor_features(q * d**-0.25, W), favor_features(k * d**-0.25, W), v, causal)


def linformer(q, k, v, E, F):
    keys = torch.einsum("rn,...nd->...rd", E, k)
    votes = torch.exp(torch.log_softmax(torch.einsum("...td,...rd->...tr", q, keys) / q.shape[-1] ** 0.5, -1))
    return torch.einsum("...tr,...re->...te", votes, torch.einsum("rn,...ne->...re", F, v))
