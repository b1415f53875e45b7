"""Chapter 10: three multi-head modules as they are found in the wild, each with its own contract, and two converters."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F


def split(x, heads):
    """Give each head its slice of the features.   x (B, L, H·D)   ->   (B, H, L, D)"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge(x):
    """Put the heads of each token side by side.   x (B, H, L, D)   ->   (B, L, H·D)"""
    return x.transpose(1, 2).flatten(2)


def attend(q, k, v, mask=None, dropout=None):
    """Scaled dot-product attention; a query that may look nowhere gets zeros.

    q (..., Lq, d)   k (..., Lk, d)   v (..., Lk, e)   ->   (..., Lq, e), (..., Lq, Lk)

    mask is True where a query may look. The weights are returned as they were before `dropout`.
    """
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is None:
        weights = torch.softmax(scores, -1)
    else:
        somewhere = mask.any(-1, keepdim=True)
        scores = scores.masked_fill(~mask & somewhere, -torch.inf)  # an empty row stays finite: no NaN gradient
        weights = torch.softmax(scores, -1).masked_fill(~mask, 0.0)
    return (weights if dropout is None else dropout(weights)) @ v, weights


def for_all_heads(mask):
    """A mask (Lq, Lk) or (B, Lq, Lk), 0 = drop, as one of ours that broadcasts to (B, H, Lq, Lk)."""
    if mask is None:
        return None
    return (mask != 0)[:, None] if mask.dim() == 3 else mask != 0


class MultiHeadAttention(nn.Module):
    """The whole post-norm sub-layer: LayerNorm(Q + dropout(W_O heads)), with biases."""

    def __init__(self, d_model=512, n_heads=8, dropout=0.1):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide a width of {d_model}")
        self.heads = n_heads
        self.W_Q = nn.Linear(d_model, d_model)
        self.W_K = nn.Linear(d_model, d_model)
        self.W_V = nn.Linear(d_model, d_model)
        self.W_O = nn.Linear(d_model, d_model)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-5)
        self.dropout = nn.Dropout(dropout)

    def forward(self, Q, K, V, mask=None):
        q, k, v = split(self.W_Q(Q), self.heads), split(self.W_K(K), self.heads), split(self.W_V(V), self.heads)
        heads, weights = attend(q, k, v, for_all_heads(mask), self.dropout)
        return self.layer_norm(Q + self.dropout(self.W_O(merge(heads)))), weights


class JadoreMHA(nn.Module):
    """The same sub-layer without biases, with head widths d_k and d_v of their own and a smaller eps."""

    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.heads = n_head
        self.w_qs = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_ks = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)
        self.dropout = nn.Dropout(dropout)

    def forward(self, q, k, v, mask=None):
        residual = q
        q, k, v = split(self.w_qs(q), self.heads), split(self.w_ks(k), self.heads), split(self.w_vs(v), self.heads)
        heads, attn = attend(q, k, v, for_all_heads(mask), self.dropout)
        return self.layer_norm(residual + self.dropout(self.fc(merge(heads)))), attn


class PackedMHA(nn.Module):
    """Attention alone. When the three inputs are equally wide, one matrix holds the three projections: q, k, v."""

    def __init__(self, E_q, E_k, E_v, E_total, nheads, dropout=0.0, bias=True):
        super().__init__()
        if E_total % nheads:
            raise ValueError(f"{nheads} heads do not divide a width of {E_total}")
        self.heads = nheads
        self.packed = E_q == E_k == E_v
        if self.packed:
            self.packed_proj = nn.Linear(E_q, 3 * E_total, bias=bias)
        else:
            self.q_proj = nn.Linear(E_q, E_total, bias=bias)
            self.k_proj = nn.Linear(E_k, E_total, bias=bias)
            self.v_proj = nn.Linear(E_v, E_total, bias=bias)
        self.out_proj = nn.Linear(E_total, E_q, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, attn_mask=None, is_causal=False):
        q, k, v = (split(x, self.heads) for x in self.project(query, key, value))
        mask = allowed(attn_mask, is_causal, q.shape[2], k.shape[2], q.device)
        return self.out_proj(merge(attend(q, k, v, mask, self.dropout)[0]))

    def project(self, query, key, value):
        if not self.packed:
            return self.q_proj(query), self.k_proj(key), self.v_proj(value)
        weights = self.packed_proj.weight.chunk(3)
        biases = (None,) * 3 if self.packed_proj.bias is None else self.packed_proj.bias.chunk(3)
        return map(F.linear, (query, key, value), weights, biases)


def allowed(attn_mask, is_causal, q_len, k_len, device=None):
    """`attn_mask` (Lq, Lk), (B, Lq, Lk) or (B, H|1, Lq, Lk) AND the causal mask, aligned to the lower right."""
    mask = for_all_heads(attn_mask)
    if not is_causal:
        return mask
    past = torch.ones(q_len, k_len, dtype=torch.bool, device=device).tril(k_len - q_len)
    return past if mask is None else mask & past


def torch_to_packed(state):
    """Rename the state dict of nn.MultiheadAttention into that of PackedMHA. `state` stays as it was."""
    if "bias_k" in state or "bias_v" in state:
        raise ValueError("bias_k and bias_v have no place in PackedMHA")
    packed = {name: tensor for name, tensor in state.items() if name.startswith("out_proj.")}
    if "in_proj_weight" in state:
        packed["packed_proj.weight"] = state["in_proj_weight"]
        if "in_proj_bias" in state:
            packed["packed_proj.bias"] = state["in_proj_bias"]
        return packed
    for name in "qkv":
        packed[f"{name}_proj.weight"] = state[f"{name}_proj_weight"]
    if "in_proj_bias" in state:
        for name, bias in zip("qkv", state["in_proj_bias"].chunk(3), strict=True):
            packed[f"{name}_proj.bias"] = bias
    return packed


def varlen_attention(q, k, v, offsets):
    """Attention inside each of the sequences that lie end to end: sequence i is rows offsets[i] … offsets[i + 1] − 1.

    q, k, v (total, H, D)   offsets (B + 1)   ->   (total, H, D)
    """
    pieces = []
    for begin, end in pairwise(offsets.tolist()):
        here = (x[begin:end].transpose(0, 1) for x in (q, k, v))  # (H, L, D)
        pieces.append(attend(*here)[0].transpose(0, 1))
    return torch.cat(pieces)
