"""Everything is computed in float64 and cast back at the end; the rows are scattered into a padded batch."""

import torch
from torch import nn
from torch.nn import functional as F


def _linear(x, weight, bias):
    return F.linear(x.double(), weight.double(), None if bias is None else bias.double())


def _cut(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def _attend(q, k, v, mask, p):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    bias = torch.zeros_like(scores)
    if mask is not None:
        bias = bias.masked_fill(~mask, torch.finfo(torch.float64).min / 2)
    weights = (scores + bias).softmax(-1)
    if mask is not None:
        weights = weights * mask
    return (F.dropout(weights, p) @ v).swapaxes(1, 2).flatten(2), weights


def _bool(mask):
    if mask is None:
        return None
    return mask.to(torch.bool).unsqueeze(-3)


class _SubLayer(nn.Module):
    names = ()

    def run(self, q, k, v, mask):
        Q, K, V, last = (getattr(self, name) for name in self.names)
        p = self.p if self.training else 0.0
        heads = (_cut(_linear(x, W.weight, W.bias), self.h) for x, W in ((q, Q), (k, K), (v, V)))
        merged, weights = _attend(*heads, _bool(mask), p)
        total = q.double() + F.dropout(_linear(merged, last.weight, last.bias), p)
        norm = self.layer_norm
        out = F.layer_norm(total, total.shape[-1:], norm.weight.double(), norm.bias.double(), norm.eps)
        return out.to(q.dtype), weights.to(q.dtype)


class MultiHeadAttention(_SubLayer):
    names = ("W_Q", "W_K", "W_V", "W_O")

    def __init__(self, d_model=512, n_heads=8, dropout=0.1):
        super().__init__()
        if d_model % n_heads or not 0 <= dropout <= 1:
            raise ValueError("bad arguments")
        self.h, self.p = n_heads, dropout
        for name in self.names:
            setattr(self, name, nn.Linear(d_model, d_model))
        self.layer_norm = nn.LayerNorm(d_model)

    def forward(self, Q, K, V, mask=None):
        return self.run(Q, K, V, mask)


class JadoreMHA(_SubLayer):
    names = ("w_qs", "w_ks", "w_vs", "fc")

    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        if not 0 <= dropout <= 1:
            raise ValueError("bad arguments")
        self.h, self.p = n_head, dropout
        for name, width in zip(self.names, (d_k, d_k, d_v), strict=False):
            setattr(self, name, nn.Linear(d_model, n_head * width, bias=False))
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, q, k, v, mask=None):
        return self.run(q, k, v, mask)


class PackedMHA(nn.Module):
    def __init__(self, E_q, E_k, E_v, E_total, nheads, dropout=0.0, bias=True):
        super().__init__()
        if E_total % nheads or not 0 <= dropout <= 1:
            raise ValueError("bad arguments")
        self.h, self.p, self.same = nheads, dropout, E_q == E_k == E_v
        if self.same:
            self.packed_proj = nn.Linear(E_q, 3 * E_total, bias=bias)
        else:
            self.q_proj = nn.Linear(E_q, E_total, bias=bias)
            self.k_proj = nn.Linear(E_k, E_total, bias=bias)
            self.v_proj = nn.Linear(E_v, E_total, bias=bias)
        self.out_proj = nn.Linear(E_total, E_q, bias=bias)

    def forward(self, query, key, value, attn_mask=None, is_causal=False):
        if self.same:
            W, b = self.packed_proj.weight, self.packed_proj.bias
            pairs = zip(W.tensor_split(3), b.tensor_split(3) if b is not None else (None,) * 3, strict=True)
        else:
            pairs = ((layer.weight, layer.bias) for layer in (self.q_proj, self.k_proj, self.v_proj))
        q, k, v = (_cut(_linear(x, W, b), self.h) for x, (W, b) in zip((query, key, value), pairs, strict=True))
        shape = (q.shape[-2], k.shape[-2])
        mask = torch.ones(shape, dtype=torch.bool, device=q.device)
        if is_causal:
            mask = mask.tril(shape[1] - shape[0])
        if attn_mask is not None:
            mask = mask & (attn_mask if attn_mask.dim() != 3 else attn_mask.unsqueeze(-3))
        merged, _ = _attend(q, k, v, mask, self.p if self.training else 0.0)
        return _linear(merged, self.out_proj.weight, self.out_proj.bias).to(query.dtype)


def torch_to_packed(state):
    if state.get("bias_k") is not None or state.get("bias_v") is not None:
        raise ValueError("cannot be converted")
    state = dict(state)
    bias = state.pop("in_proj_bias", None)
    if "in_proj_weight" in state:
        state["packed_proj.weight"] = state.pop("in_proj_weight")
        if bias is not None:
            state["packed_proj.bias"] = bias
        return state
    for i, name in enumerate(("q_proj", "k_proj", "v_proj")):
        state[f"{name}.weight"] = state.pop(f"{name}_weight")
        if bias is not None:
            state[f"{name}.bias"] = bias.reshape(3, -1)[i]
    return state


def varlen_attention(q, k, v, offsets):
    lengths = offsets.diff().long()
    longest = int(lengths.max())
    real = torch.arange(longest, device=q.device) < lengths[:, None].to(q.device)
    padded = []
    for x in (q, k, v):
        block = torch.zeros(len(lengths), longest, *x.shape[1:], dtype=torch.float64, device=x.device)
        padded.append(block.masked_scatter(real[:, :, None, None], x.double()).transpose(1, 2))
    merged, _ = _attend(*padded, real[:, None, None, :], 0.0)
    return merged.unflatten(-1, q.shape[1:])[real].to(q.dtype)
