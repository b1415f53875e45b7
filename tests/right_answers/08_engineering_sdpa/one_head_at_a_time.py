"""Loops over sequences and heads, written out; nothing is batched."""

import torch
from torch import nn


def _one(q, k, v, factor, allowed, bias, keep):
    """One head: returns what it gives and the weights before dropout."""
    scores = torch.mm(q, k.t()) * factor
    if bias is not None:
        scores = scores + bias
    if allowed is None:
        attn = torch.softmax(scores, 1)
    else:
        rows = []
        for row, may in zip(scores, allowed, strict=True):
            if may.any():
                rows.append(torch.softmax(torch.where(may, row, torch.full_like(row, -torch.inf)), 0))
            else:
                rows.append(row * 0)
        attn = torch.stack(rows)
    return torch.mm(keep(attn), v), attn


def _all(q, k, v, factor, allowed, bias, keep):
    lead = q.shape[:-2]
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (q, k, v)]
    full = (*lead, q.shape[-2], k.shape[-2])
    each = [None if x is None else x.expand(full).reshape(-1, *full[-2:]) for x in (allowed, bias)]
    outs, weights = [], []
    for i in range(len(flat[0])):
        out, attn = _one(*(x[i] for x in flat), factor, *(None if x is None else x[i] for x in each), keep)
        outs.append(out)
        weights.append(attn)
    return torch.stack(outs).reshape(*lead, *outs[0].shape), torch.stack(weights).reshape(full)


class ScaledDotProductAttention(nn.Module):
    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.temperature = temperature
        self.drop = nn.Dropout(p=attn_dropout)

    def forward(self, q, k, v, mask=None):
        return _all(q, k, v, 1 / self.temperature, None if mask is None else mask != 0, None, self.drop)


def expand_kv(x, num_query_heads):
    groups = x.shape[1]
    if num_query_heads % groups:
        raise ValueError("no")
    return torch.stack([x[:, h // (num_query_heads // groups)] for h in range(num_query_heads)], dim=1)


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None and is_causal:
        raise ValueError("both")
    if enable_gqa:
        heads, groups = query.shape[-3], key.shape[-3]
        if heads % groups:
            raise ValueError("no")
        key, value = (
            torch.cat([x.narrow(-3, h // (heads // groups), 1) for h in range(heads)], -3) for x in (key, value)
        )
    allowed = bias = None
    if is_causal:
        allowed = torch.zeros(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device)
        for i in range(query.shape[-2]):
            allowed[i, : i + 1] = True
    elif attn_mask is not None and attn_mask.dtype == torch.bool:
        allowed = attn_mask
    elif attn_mask is not None:
        allowed = attn_mask != -torch.inf
        bias = attn_mask.masked_fill(~allowed, 0)

    def keep(attn):
        return attn * (torch.rand_like(attn) >= dropout_p) / (1 - dropout_p) if dropout_p > 0 else attn

    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return _all(query, key, value, factor, allowed, bias, keep)[0]
