"""Heads in a list, the output matrix block by block, dropout and layer norm by hand, exp of differences for the softmax."""

import math

import torch
from torch import nn


class _Dropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError("p is no probability")
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return x * 0
        return x * torch.bernoulli(torch.full_like(x, 1 - self.p)) / (1 - self.p)


class _Norm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), eps

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + self.eps) * self.weight + self.bias


def _softmax(scores, mask):
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    top = scores.masked_fill(~mask, -torch.inf).amax(-1, keepdim=True)
    top = torch.where(top.isfinite(), top, torch.zeros_like(top)).detach()
    raised = torch.where(mask, torch.exp(torch.where(mask, scores - top, 0.0)), 0.0)
    total = raised.sum(-1, keepdim=True)
    return raised / torch.where(total == 0, 1.0, total)


def _run(q, k, v, heads, mask, dropout, out):
    """q, k, v [B, L, ·] projected; returns out applied to the heads, and the weights."""
    total, all_weights = 0, []
    for h, parts in enumerate(zip(q.chunk(heads, -1), k.chunk(heads, -1), v.chunk(heads, -1), strict=True)):
        qh, kh, vh = parts
        visible = mask if mask is None or mask.dim() < 4 else mask[:, h % mask.shape[1]]
        weights = _softmax(torch.bmm(qh, kh.mT) / math.sqrt(qh.shape[-1]), visible)
        all_weights.append(weights)
        total = total + dropout(weights) @ vh @ out.weight.chunk(heads, 1)[h].T
    return total if out.bias is None else total + out.bias, torch.stack(all_weights, 1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model=512, n_heads=8, dropout=0.1):
        super().__init__()
        if d_model // n_heads * n_heads != d_model:
            raise ValueError("heads")
        self.n = n_heads
        self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(d_model, d_model) for _ in range(4))
        self.layer_norm, self.drop = _Norm(d_model, 1e-5), _Dropout(dropout)

    def forward(self, Q, K, V, mask=None):
        seen = None if mask is None else mask.bool().expand(len(Q), -1, -1)
        out, weights = _run(self.W_Q(Q), self.W_K(K), self.W_V(V), self.n, seen, self.drop, self.W_O)
        return self.layer_norm(Q + self.drop(out)), weights


class JadoreMHA(nn.Module):
    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.n = n_head
        self.w_qs = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_ks = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)
        self.layer_norm, self.drop = _Norm(d_model, 1e-6), _Dropout(dropout)

    def forward(self, q, k, v, mask=None):
        seen = None if mask is None else mask.bool().expand(len(q), -1, -1)
        out, weights = _run(self.w_qs(q), self.w_ks(k), self.w_vs(v), self.n, seen, self.drop, self.fc)
        return self.layer_norm(q + self.drop(out)), weights


class PackedMHA(nn.Module):
    def __init__(self, E_q, E_k, E_v, E_total, nheads, dropout=0.0, bias=True):
        super().__init__()
        if E_total // nheads * nheads != E_total:
            raise ValueError("heads")
        self.n, self.E, self.drop = nheads, E_total, _Dropout(dropout)
        if E_q == E_k == E_v:
            self.packed_proj = nn.Linear(E_q, 3 * E_total, bias=bias)
            self.q_proj = self.k_proj = self.v_proj = None
        else:
            self.packed_proj = None
            self.q_proj = nn.Linear(E_q, E_total, bias=bias)
            self.k_proj = nn.Linear(E_k, E_total, bias=bias)
            self.v_proj = nn.Linear(E_v, E_total, bias=bias)
        self.out_proj = nn.Linear(E_total, E_q, bias=bias)

    def forward(self, query, key, value, attn_mask=None, is_causal=False):
        if self.packed_proj is None:
            q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        else:
            E = self.E
            q, k, v = (self.packed_proj(x)[..., i * E : (i + 1) * E] for i, x in enumerate((query, key, value)))
        if is_causal:
            lower = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device)
            lower = lower.flip(0, 1).triu().flip(0, 1)
            attn_mask = lower if attn_mask is None else lower.logical_and(attn_mask)
        return _run(q, k, v, self.n, attn_mask, self.drop, self.out_proj)[0]


def torch_to_packed(state):
    if "bias_k" in state:
        raise ValueError("bias_k")
    out = {name: state[name] for name in ("out_proj.weight", "out_proj.bias") if name in state}
    bias = state.get("in_proj_bias")
    if "in_proj_weight" in state:
        return (
            out | {"packed_proj.weight": state["in_proj_weight"]} | ({} if bias is None else {"packed_proj.bias": bias})
        )
    width = state["q_proj_weight"].shape[0]
    for i, letter in enumerate("qkv"):
        out[f"{letter}_proj.weight"] = state[f"{letter}_proj_weight"]
        if bias is not None:
            out[f"{letter}_proj.bias"] = bias[i * width : (i + 1) * width]
    return out


def varlen_attention(q, k, v, offsets):
    pieces = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        if begin == end:
            continue
        heads = []
        for h in range(q.shape[1]):
            scores = q[begin:end, h] @ k[begin:end, h].T / math.sqrt(q.shape[2])
            heads.append(_softmax(scores, None) @ v[begin:end, h])
        pieces.append(torch.stack(heads, 1))
    return torch.cat(pieces)
