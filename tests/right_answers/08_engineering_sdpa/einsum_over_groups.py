"""Einsum everywhere: query heads are folded into groups, so no KV head is ever copied; dropout by bernoulli."""

import torch
from torch import nn


def _softmax(scores, allowed):
    if allowed is None:
        return scores.softmax(-1)
    return torch.where(allowed, torch.where(allowed, scores, -torch.inf).softmax(-1).nan_to_num(0.0), 0.0)


def _thin(weights, p):
    if p == 0:
        return weights
    return weights * torch.bernoulli(torch.full_like(weights, 1 - p)) / (1 - p)


class ScaledDotProductAttention(nn.Module):
    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.tau, self.p = temperature, attn_dropout

    def forward(self, q, k, v, mask=None):
        scores = torch.einsum("...id,...jd->...ij", q, k) / self.tau
        attn = _softmax(scores, None if mask is None else mask.bool())
        kept = _thin(attn, self.p) if self.training else attn
        return torch.einsum("...ij,...je->...ie", kept, v), attn


def expand_kv(x, num_query_heads):
    B, G, L, D = x.shape
    times, rest = divmod(num_query_heads, G)
    if rest:
        raise ValueError("the heads do not divide")
    return x[:, :, None].expand(B, G, times, L, D).reshape(B, num_query_heads, L, D)


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if is_causal and attn_mask is not None:
        raise ValueError("one of the two")
    if scale is None:
        scale = query.shape[-1] ** -0.5
    if enable_gqa:
        times, rest = divmod(query.shape[-3], key.shape[-3])
        if rest:
            raise ValueError("the heads do not divide")
        query = query.unflatten(-3, (key.shape[-3], times))
        scores = torch.einsum("...gnid,...gjd->...gnij", query, key).flatten(-4, -3)
    else:
        scores = torch.einsum("...id,...jd->...ij", query, key)
    scores = scores * scale
    allowed = None
    if is_causal:
        i = torch.arange(scores.shape[-2], device=scores.device)
        j = torch.arange(scores.shape[-1], device=scores.device)
        allowed = j <= i[:, None]
    elif attn_mask is not None and attn_mask.dtype is torch.bool:
        allowed = attn_mask
    elif attn_mask is not None:
        allowed = ~attn_mask.isneginf()
        scores = scores + torch.where(allowed, attn_mask, 0.0)
    weights = _thin(_softmax(scores, allowed), dropout_p)
    if not enable_gqa:
        return torch.einsum("...ij,...je->...ie", weights, value)
    weights = weights.unflatten(-3, (value.shape[-3], times))
    return torch.einsum("...gnij,...gje->...gnie", weights, value).flatten(-4, -3)
