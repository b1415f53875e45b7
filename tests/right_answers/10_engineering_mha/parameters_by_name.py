"""A small layer of one's own in place of nn.Linear; folded baddbmm; block-diagonal bias for the rows end to end."""

import torch
from torch import nn
from torch.nn import functional as F


class _Affine(nn.Module):
    def __init__(self, width_in, width_out, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width_out, width_in) / width_in**0.5)
        self.bias = nn.Parameter(torch.zeros(width_out)) if bias else None

    def forward(self, x, rows=slice(None)):
        out = x @ self.weight[rows].mT
        return out if self.bias is None else out + self.bias[rows]


def _fold(x, h):
    """[B, L, H·d] to [B·H, L, d]"""
    B, L, E = x.shape
    return x.reshape(B, L, h, E // h).permute(0, 2, 1, 3).reshape(B * h, L, E // h)


def _attention(q, k, v, h, mask, p):
    """Folded q, k, v; mask broadcastable to [B, H, Lq, Lk] or None."""
    shape = (q.shape[0] // h, h, q.shape[1], k.shape[1])
    mask = torch.ones(shape, dtype=torch.bool, device=q.device) if mask is None else mask.expand(shape)
    start = torch.zeros(shape, dtype=q.dtype, device=q.device)
    start = start.masked_fill(~mask, torch.finfo(q.dtype).min).flatten(0, 1)
    start = start.masked_fill(~mask.any(-1, keepdim=True).flatten(0, 1), 0.0)
    scores = torch.baddbmm(start, q, k.mT, alpha=q.shape[-1] ** -0.5)
    weights = torch.softmax(scores, 2) * mask.flatten(0, 1).to(q.dtype)
    heads = torch.bmm(F.dropout(weights, p, p > 0), v).unflatten(0, (-1, h))
    return heads.permute(0, 2, 1, 3).flatten(2), weights.unflatten(0, (-1, h))


def _three(mask):
    if mask is None:
        return None
    return (mask != 0)[None, None] if mask.dim() == 2 else (mask != 0)[:, None]


def _probability(p):
    if p < 0 or p > 1:
        raise ValueError(f"dropout {p}")
    return p


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model=512, n_heads=8, dropout=0.1):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads")
        self.h, self.p = n_heads, _probability(dropout)
        self.W_Q, self.W_K = _Affine(d_model, d_model), _Affine(d_model, d_model)
        self.W_V, self.W_O = _Affine(d_model, d_model), _Affine(d_model, d_model)
        self.layer_norm = nn.LayerNorm(d_model)

    def forward(self, Q, K, V, mask=None):
        p, h = self.p * self.training, self.h
        out, weights = _attention(
            _fold(self.W_Q(Q), h), _fold(self.W_K(K), h), _fold(self.W_V(V), h), h, _three(mask), p
        )
        return self.layer_norm(Q + F.dropout(self.W_O(out), p, self.training)), weights


class JadoreMHA(nn.Module):
    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.h, self.p = n_head, _probability(dropout)
        self.w_qs, self.w_ks = _Affine(d_model, n_head * d_k, False), _Affine(d_model, n_head * d_k, False)
        self.w_vs, self.fc = _Affine(d_model, n_head * d_v, False), _Affine(n_head * d_v, d_model, False)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, q, k, v, mask=None):
        p, h = self.p * self.training, self.h
        out, attn = _attention(
            _fold(self.w_qs(q), h), _fold(self.w_ks(k), h), _fold(self.w_vs(v), h), h, _three(mask), p
        )
        return self.layer_norm(q + F.dropout(self.fc(out), p, self.training)), attn


class PackedMHA(nn.Module):
    def __init__(self, E_q, E_k, E_v, E_total, nheads, dropout=0.0, bias=True):
        super().__init__()
        if E_total % nheads:
            raise ValueError("nheads")
        self.h, self.p, self.E = nheads, _probability(dropout), E_total
        if E_q == E_k == E_v:
            self.packed_proj = _Affine(E_q, 3 * E_total, bias)
        else:
            self.q_proj, self.k_proj = _Affine(E_q, E_total, bias), _Affine(E_k, E_total, bias)
            self.v_proj = _Affine(E_v, E_total, bias)
        self.out_proj = _Affine(E_total, E_q, bias)

    def project(self, name, i, x):
        if hasattr(self, "packed_proj"):
            return self.packed_proj(x, slice(i * self.E, (i + 1) * self.E))
        return getattr(self, name)(x)

    def forward(self, query, key, value, attn_mask=None, is_causal=False):
        pairs = (("q_proj", query), ("k_proj", key), ("v_proj", value))
        q, k, v = (_fold(self.project(name, i, x), self.h) for i, (name, x) in enumerate(pairs))
        mask = None
        if attn_mask is not None:
            mask = attn_mask if attn_mask.dim() == 4 else _three(attn_mask)
        if is_causal:
            Lq, Lk = query.shape[1], key.shape[1]
            age = torch.arange(Lk, device=q.device) - torch.arange(Lk - Lq, Lk, device=q.device)[:, None]
            mask = age <= 0 if mask is None else torch.logical_and(mask, age <= 0)
        return self.out_proj(_attention(q, k, v, self.h, mask, self.p * self.training)[0])


def torch_to_packed(state):
    new = {}
    for name, tensor in state.items():
        match name:
            case "bias_k" | "bias_v":
                raise ValueError(name)
            case "in_proj_weight":
                new["packed_proj.weight"] = tensor
            case "in_proj_bias":
                if "q_proj_weight" not in state:
                    new["packed_proj.bias"] = tensor
                else:
                    new.update(zip(("q_proj.bias", "k_proj.bias", "v_proj.bias"), tensor.chunk(3), strict=True))
            case "out_proj.weight" | "out_proj.bias":
                new[name] = tensor
            case _:
                new[name.removesuffix("_weight") + ".weight"] = tensor
    return new


def varlen_attention(q, k, v, offsets):
    blocks = [torch.ones(n, n, dtype=torch.bool) for n in offsets.diff().tolist() if n]
    mask = torch.block_diag(*blocks).bool().to(q.device)
    scores = torch.matmul(q.transpose(0, 1), k.permute(1, 2, 0)) / q.shape[2] ** 0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return torch.matmul(weights, v.transpose(0, 1)).transpose(0, 1)
