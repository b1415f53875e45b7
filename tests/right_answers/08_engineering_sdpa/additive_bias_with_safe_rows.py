"""Everything becomes a bias with −inf; rows without a key get a bias of 0 and are multiplied by 0 afterwards."""

import math

import torch
from torch import nn


def _bias(allowed, dtype):
    sees = allowed.any(-1, keepdim=True)
    zeros = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return zeros.masked_fill(~allowed & sees, -math.inf), sees.to(dtype)


class ScaledDotProductAttention(nn.Module):
    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.register_buffer("temperature", torch.tensor(float(temperature)))
        self.attn_dropout = attn_dropout

    def forward(self, q, k, v, mask=None):
        scores = q.matmul(k.mT) / self.temperature.to(q.dtype)
        if mask is None:
            attn = scores.softmax(-1)
        else:
            bias, sees = _bias(mask != 0, q.dtype)
            attn = (scores + bias).softmax(-1) * sees
        return torch.dropout(attn, self.attn_dropout, self.training).matmul(v), attn


def expand_kv(x, num_query_heads):
    if num_query_heads < x.shape[1] or num_query_heads % x.shape[1] > 0:
        raise ValueError(f"{x.shape[1]} does not divide {num_query_heads}")
    reader = torch.arange(num_query_heads, device=x.device) // (num_query_heads // x.shape[1])
    return x[:, reader]


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None and is_causal:
        raise ValueError("attn_mask and is_causal exclude each other")
    if enable_gqa:
        heads, groups = query.shape[-3], key.shape[-3]
        if heads % groups:
            raise ValueError(f"{groups} does not divide {heads}")
        reader = torch.arange(heads, device=query.device) // (heads // groups)
        key, value = key.index_select(-3, reader), value.index_select(-3, reader)
    factor = 1 / math.sqrt(query.shape[-1])
    if scale is not None:
        factor = scale
    scores = (query * factor) @ key.mT
    sees = None
    if is_causal:
        attn_mask = torch.tril(torch.ones(scores.shape[-2], scores.shape[-1], device=query.device)).bool()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        bias, sees = _bias(attn_mask, query.dtype)
        scores = scores + bias
    elif attn_mask is not None:
        sees = (attn_mask > -math.inf).any(-1, keepdim=True).to(query.dtype)
        scores = scores + torch.where(sees > 0, attn_mask, torch.zeros_like(attn_mask))
    weights = scores.softmax(-1)
    if sees is not None:
        weights = weights * sees
    return nn.functional.dropout(weights, dropout_p, training=True) @ value
