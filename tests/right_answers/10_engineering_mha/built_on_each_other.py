"""One attention core for all: the sub-layers and the varlen function reuse it; packed weights are cut by unflatten."""

import torch
from torch import nn


class _Core(nn.Module):
    """q, k, v with heads in front, mask True = may look; keeps its last weights."""

    def __init__(self, p=0.0):
        super().__init__()
        self.dropout = nn.Dropout(p)

    def forward(self, q, k, v, mask=None):
        log = (q / q.shape[-1] ** 0.25) @ (k / k.shape[-1] ** 0.25).transpose(-2, -1)
        if mask is not None:
            blind = mask.any(-1, keepdim=True).logical_not()
            log = log.masked_fill(~(mask | blind), float("-inf"))
            weights = torch.exp(log - torch.logsumexp(log, -1, keepdim=True)).masked_fill(blind, 0)
        else:
            weights = torch.exp(log - torch.logsumexp(log, -1, keepdim=True))
        return self.dropout(weights) @ v, weights


def _in(x, h):
    return x.unflatten(-1, (h, -1)).movedim(-2, 1)


def _out(x):
    return x.movedim(1, -2).flatten(-2)


class JadoreMHA(nn.Module):
    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.n_head = n_head
        self.w_qs = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_ks = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)
        self.core = _Core(dropout)

    def forward(self, q, k, v, mask=None):
        return self.sublayer(q, k, v, mask, (self.w_qs, self.w_ks, self.w_vs, self.fc))

    def sublayer(self, q, k, v, mask, layers):
        wq, wk, wv, wo = layers
        if mask is not None:
            mask = (mask != 0).reshape(-1, 1, *mask.shape[-2:])
        heads, attn = self.core(_in(wq(q), self.n_head), _in(wk(k), self.n_head), _in(wv(v), self.n_head), mask)
        return self.layer_norm(torch.add(q, self.core.dropout(wo(_out(heads))))), attn


class MultiHeadAttention(JadoreMHA):
    def __init__(self, d_model=512, n_heads=8, dropout=0.1):
        width, rest = divmod(d_model, n_heads)
        if rest:
            raise ValueError(f"{d_model} / {n_heads}")
        super().__init__(n_heads, d_model, width, width, dropout)
        del self.w_qs, self.w_ks, self.w_vs, self.fc
        self.W_Q, self.W_K, self.W_V, self.W_O = [nn.Linear(d_model, d_model) for _ in "QKVO"]
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-5)

    def forward(self, Q, K, V, mask=None):
        return self.sublayer(Q, K, V, mask, (self.W_Q, self.W_K, self.W_V, self.W_O))


class PackedMHA(nn.Module):
    def __init__(self, E_q, E_k, E_v, E_total, nheads, dropout=0.0, bias=True):
        super().__init__()
        if E_total % nheads:
            raise ValueError("nheads")
        self.nheads, self.equal, self.core = nheads, (E_q, E_q) == (E_k, E_v), _Core(dropout)
        if self.equal:
            self.packed_proj = nn.Linear(E_q, 3 * E_total, bias)
        else:
            self.q_proj, self.k_proj, self.v_proj = [nn.Linear(E, E_total, bias) for E in (E_q, E_k, E_v)]
        self.out_proj = nn.Linear(E_total, E_q, bias)

    def forward(self, query, key, value, attn_mask=None, is_causal=False):
        if self.equal:
            q = _in(self.packed_proj(query), 3 * self.nheads)[:, : self.nheads]
            k = _in(self.packed_proj(key), 3 * self.nheads)[:, self.nheads : 2 * self.nheads]
            v = _in(self.packed_proj(value), 3 * self.nheads)[:, 2 * self.nheads :]
        else:
            q, k, v = [
                _in(f(x), self.nheads) for f, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
            ]
        masks = []
        if attn_mask is not None:
            masks.append(attn_mask.unsqueeze(1) if attn_mask.ndim == 3 else attn_mask)
        if is_causal:
            ones = torch.ones(q.size(2), k.size(2), device=q.device)
            masks.append(ones.triu(k.size(2) - q.size(2) + 1) == 0)
        mask = masks[0] & masks[-1] if masks else None
        return self.out_proj(_out(self.core(q, k, v, mask)[0]))


def torch_to_packed(state):
    if "bias_v" in state:
        raise ValueError("bias_v")
    biases = dict(zip("qkv", state["in_proj_bias"].chunk(3), strict=True)) if "in_proj_bias" in state else {}
    new = {name: value for name, value in state.items() if "." in name}
    if "in_proj_weight" in state:
        new["packed_proj.weight"] = state["in_proj_weight"]
        if biases:
            new["packed_proj.bias"] = torch.cat(list(biases.values()))
    else:
        new.update({f"{x}_proj.weight": state[f"{x}_proj_weight"] for x in "qkv"})
        new.update({f"{x}_proj.bias": bias for x, bias in biases.items()})
    return new


def varlen_attention(q, k, v, offsets):
    sizes = (offsets[1:] - offsets[:-1]).tolist()
    core = _Core()
    pieces = [
        core(*(x.swapaxes(0, 1) for x in rows))[0] for rows in zip(*(x.split(sizes) for x in (q, k, v)), strict=True)
    ]
    return torch.cat(pieces, dim=1).swapaxes(0, 1)
