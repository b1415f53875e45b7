"""Everything by einsum on weights that are viewed by head; one mask for all sequences that lie end to end."""

import torch
from torch import nn
from torch.nn import functional as F


def _heads(x, layer, number):
    weight = layer.weight.view(number, -1, layer.in_features)
    out = torch.einsum("ble,hde->bhld", x, weight)
    return out if layer.bias is None else out + layer.bias.view(number, 1, -1)


def _weights(q, k, mask):
    scores = torch.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    if mask is None:
        return torch.softmax(scores, -1)
    weights = torch.softmax(torch.where(mask, scores, torch.finfo(scores.dtype).min), -1)
    return torch.where(mask, weights, torch.zeros_like(weights))


def _out(heads, layer):
    weight = layer.weight.view(layer.out_features, heads.shape[1], -1)
    out = torch.einsum("bhld,ehd->ble", heads, weight)
    return out if layer.bias is None else out + layer.bias


def _mask(mask):
    if mask is None:
        return None
    mask = mask.ne(0)
    return mask[:, None] if mask.ndim == 3 else mask


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model=512, n_heads=8, dropout=0.1):
        super().__init__()
        if d_model % n_heads:
            raise ValueError
        self.h, self.p = n_heads, nn.Dropout(dropout).p
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            self.add_module(name, nn.Linear(d_model, d_model))
        self.layer_norm = nn.LayerNorm(d_model, 1e-5)

    def forward(self, Q, K, V, mask=None):
        weights = _weights(_heads(Q, self.W_Q, self.h), _heads(K, self.W_K, self.h), _mask(mask))
        heads = torch.einsum("bhqk,bhkd->bhqd", F.dropout(weights, self.p, self.training), _heads(V, self.W_V, self.h))
        return self.layer_norm(F.dropout(_out(heads, self.W_O), self.p, self.training) + Q), weights


class JadoreMHA(nn.Module):
    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.h, self.p = n_head, nn.Dropout(dropout).p
        self.w_qs, self.w_ks = (nn.Linear(d_model, n_head * d_k, False) for _ in range(2))
        self.w_vs = nn.Linear(d_model, n_head * d_v, False)
        self.fc = nn.Linear(n_head * d_v, d_model, False)
        self.layer_norm = nn.LayerNorm(d_model, 1e-6)

    def forward(self, q, k, v, mask=None):
        attn = _weights(_heads(q, self.w_qs, self.h), _heads(k, self.w_ks, self.h), _mask(mask))
        heads = torch.einsum("bhqk,bhkd->bhqd", F.dropout(attn, self.p, self.training), _heads(v, self.w_vs, self.h))
        return self.layer_norm(F.dropout(_out(heads, self.fc), self.p, self.training) + q), attn


class PackedMHA(nn.Module):
    def __init__(self, E_q, E_k, E_v, E_total, nheads, dropout=0.0, bias=True):
        super().__init__()
        if E_total % nheads:
            raise ValueError
        self.h, self.p = nheads, nn.Dropout(dropout).p
        if len({E_q, E_k, E_v}) == 1:
            self.packed_proj = nn.Linear(E_q, 3 * E_total, bias)
        else:
            self.q_proj, self.k_proj, self.v_proj = (nn.Linear(E, E_total, bias) for E in (E_q, E_k, E_v))
        self.out_proj = nn.Linear(E_total, E_q, bias)

    def forward(self, query, key, value, attn_mask=None, is_causal=False):
        inputs = query, key, value
        if hasattr(self, "packed_proj"):
            q, k, v = (_heads(x, self.packed_proj, 3 * self.h).chunk(3, 1)[i] for i, x in enumerate(inputs))
        else:
            layers = self.q_proj, self.k_proj, self.v_proj
            q, k, v = (_heads(x, layer, self.h) for x, layer in zip(inputs, layers, strict=True))
        mask = _mask(attn_mask)
        if is_causal:
            i = torch.arange(q.shape[2], device=q.device)[:, None] + k.shape[2] - q.shape[2]
            past = torch.arange(k.shape[2], device=q.device) <= i
            mask = past if mask is None else past & mask
        weights = F.dropout(_weights(q, k, mask), self.p, self.training)
        return _out(torch.einsum("bhqk,bhkd->bhqd", weights, v), self.out_proj)


def torch_to_packed(state):
    if {"bias_k", "bias_v"} & state.keys():
        raise ValueError
    names = {"in_proj_weight": "packed_proj.weight", "in_proj_bias": "packed_proj.bias"}
    names |= {f"{x}_proj_weight": f"{x}_proj.weight" for x in "qkv"}
    new = {names.get(name, name): tensor.clone() for name, tensor in state.items()}
    if "in_proj_weight" not in state and "in_proj_bias" in state:
        bias = new.pop("packed_proj.bias")
        new |= {f"{x}_proj.bias": part for x, part in zip("qkv", bias.view(3, -1), strict=True)}
    return new


def varlen_attention(q, k, v, offsets):
    number = torch.bucketize(torch.arange(q.shape[0], device=q.device), offsets, right=True)
    weights = _weights(q.transpose(0, 1), k.transpose(0, 1), number[:, None] == number)
    return torch.einsum("hqk,khd->qhd", weights, v)
