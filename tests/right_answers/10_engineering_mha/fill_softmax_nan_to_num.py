"""The shortest way: fill with −inf, softmax, clean up the NaN; sequences in a loop."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def _attention(q, k, v, mask, dropout):
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(k.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = torch.nan_to_num(weights, nan=0.0)
    return torch.matmul(dropout(weights), v), weights


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model=512, n_heads=8, dropout=0.1):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model must be a multiple of n_heads")
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.W_Q = nn.Linear(d_model, d_model)
        self.W_K = nn.Linear(d_model, d_model)
        self.W_V = nn.Linear(d_model, d_model)
        self.W_O = nn.Linear(d_model, d_model)
        self.attention_dropout = nn.Dropout(dropout)
        self.output_dropout = nn.Dropout(dropout)
        self.layer_norm = nn.LayerNorm(d_model)

    def _split(self, x):
        return x.view(x.size(0), x.size(1), self.n_heads, self.d_head).transpose(1, 2)

    def forward(self, Q, K, V, mask=None):
        residual = Q
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)
        q, k, v = self._split(self.W_Q(Q)), self._split(self.W_K(K)), self._split(self.W_V(V))
        heads, weights = _attention(q, k, v, mask, self.attention_dropout)
        heads = heads.transpose(1, 2).contiguous().view(Q.size(0), Q.size(1), -1)
        return self.layer_norm(residual + self.output_dropout(self.W_O(heads))), weights


class JadoreMHA(nn.Module):
    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.n_head, self.d_k, self.d_v = n_head, d_k, d_v
        self.w_qs = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_ks = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, q, k, v, mask=None):
        residual, (B, Lq, _), Lk = q, q.shape, k.shape[1]
        if mask is not None and mask.dim() == 3:
            mask = mask.unsqueeze(1)
        q = self.w_qs(q).view(B, Lq, self.n_head, self.d_k).transpose(1, 2)
        k = self.w_ks(k).view(B, Lk, self.n_head, self.d_k).transpose(1, 2)
        v = self.w_vs(v).view(B, Lk, self.n_head, self.d_v).transpose(1, 2)
        heads, attn = _attention(q, k, v, mask, self.dropout)
        out = self.dropout(self.fc(heads.transpose(1, 2).reshape(B, Lq, -1)))
        out += residual
        return self.layer_norm(out), attn


class PackedMHA(nn.Module):
    def __init__(self, E_q, E_k, E_v, E_total, nheads, dropout=0.0, bias=True):
        super().__init__()
        if E_total % nheads != 0:
            raise ValueError("E_total must be a multiple of nheads")
        self.nheads, self.E_head, self.bias = nheads, E_total // nheads, bias
        self.same = E_q == E_k and E_q == E_v
        if self.same:
            self.packed_proj = nn.Linear(E_q, E_total * 3, bias=bias)
        else:
            self.q_proj = nn.Linear(E_q, E_total, bias=bias)
            self.k_proj = nn.Linear(E_k, E_total, bias=bias)
            self.v_proj = nn.Linear(E_v, E_total, bias=bias)
        self.out_proj = nn.Linear(E_total, E_q, bias=bias)
        self.dropout = dropout

    def forward(self, query, key, value, attn_mask=None, is_causal=False):
        if self.same:
            weights = torch.chunk(self.packed_proj.weight, 3, dim=0)
            biases = torch.chunk(self.packed_proj.bias, 3, dim=0) if self.bias else [None] * 3
            inputs = query, key, value
            query, key, value = (F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True))
        else:
            query, key, value = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        q, k, v = (x.unflatten(-1, [self.nheads, self.E_head]).transpose(1, 2) for x in (query, key, value))
        if attn_mask is not None and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(1)
        if is_causal:
            Lq, Lk = q.shape[2], k.shape[2]
            causal = torch.ones(Lq, Lk, dtype=torch.bool, device=q.device).tril(diagonal=Lk - Lq)
            attn_mask = causal if attn_mask is None else attn_mask & causal
        heads, _ = _attention(q, k, v, attn_mask, lambda w: F.dropout(w, self.dropout, self.training))
        return self.out_proj(heads.transpose(1, 2).flatten(-2))


def torch_to_packed(state):
    if any(name in state for name in ("bias_k", "bias_v")):
        raise ValueError("bias_k and bias_v are not supported")
    new = {}
    for name, tensor in state.items():
        if name == "in_proj_weight":
            new["packed_proj.weight"] = tensor
        elif name == "in_proj_bias" and "in_proj_weight" in state:
            new["packed_proj.bias"] = tensor
        elif name == "in_proj_bias":
            new["q_proj.bias"], new["k_proj.bias"], new["v_proj.bias"] = tensor.chunk(3)
        else:
            new[name.replace("_proj_weight", "_proj.weight")] = tensor
    return new


def varlen_attention(q, k, v, offsets):
    out = torch.empty_like(v)
    for i in range(len(offsets) - 1):
        s = slice(offsets[i], offsets[i + 1])
        scores = torch.einsum("qhd,khd->hqk", q[s], k[s]) / q.shape[-1] ** 0.5
        out[s] = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v[s])
    return out
