"""Chapter 15: attention whose cost grows with the length, not with its square."""

import torch


def linear_attention(q, k, v, causal=False):
    """Attention with the kernel φ(q)·φ(k) in place of exp(q·k), φ = elu + 1, and no table of scores.

    q (..., T, d)   k (..., S, d)   v (..., S, e)   ->   (..., T, e);   causal needs T = S
    """
    return _mixed(_elu_features(q), _elu_features(k), v, causal)


def linear_attention_recurrent(q, k, v):
    """Causal linear attention as a recurrent network: one token at a time, one state of fixed size.

    q, k (..., n, d)   v (..., n, e)   ->   (..., n, e)
    """
    state = norm = 0.0
    out = []
    for query, key, value in zip(_elu_features(q).unbind(-2), _elu_features(k).unbind(-2), v.unbind(-2), strict=True):
        state = state + key[..., :, None] * value[..., None, :]  # (..., d, e)
        norm = norm + key  # (..., d)
        top = (query[..., None, :] @ state)[..., 0, :]
        out.append(top / (query * norm).sum(-1, keepdim=True))
    return torch.stack(out, -2)


def favor_features(x, W):
    """Positive random features: their dot product is exp(x·y) on average over normal W.

    x (..., n, d)   W (r, d)   ->   (..., n, r)
    """
    return torch.exp(x @ W.mT - (x * x).sum(-1, keepdim=True) / 2) / W.shape[0] ** 0.5


def performer(q, k, v, W, causal=False):
    """Softmax attention, estimated with the features of `W`: the scale √d is shared by both sides.

    q (..., T, d)   k (..., S, d)   v (..., S, e)   W (r, d)   ->   (..., T, e);   causal needs T = S
    """
    share = q.shape[-1] ** 0.25
    return _mixed(favor_features(q / share, W), favor_features(k / share, W), v, causal)


def linformer(q, k, v, E, F):
    """Attend to r mixtures of the S keys and values.

    q (..., T, d)   k (..., S, d)   v (..., S, e)   E, F (r, S)   ->   (..., T, e)
    """
    scores = q @ (E @ k).mT / q.shape[-1] ** 0.5  # (..., T, r)
    return torch.softmax(scores, -1) @ (F @ v)


def _elu_features(x):
    return torch.nn.functional.elu(x) + 1


def _mixed(fq, fk, v, causal):
    """The normalised sum of the values, without ever comparing one query with one key."""
    if not causal:
        return fq @ (fk.mT @ v) / (fq @ fk.sum(-2)[..., None])
    states = (fk[..., :, None] * v[..., None, :]).cumsum(-3)  # (..., n, r, e)
    top = torch.einsum("...nr,...nre->...ne", fq, states)
    return top / (fq * fk.cumsum(-2)).sum(-1, keepdim=True)
