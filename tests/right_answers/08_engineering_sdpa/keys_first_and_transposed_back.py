"""Scores stand as keys by queries, and the softmax runs down the columns."""

import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.t = temperature
        self.p = attn_dropout

    def forward(self, q, k, v, mask=None):
        columns = torch.matmul(k, q.transpose(-1, -2)).div(self.t)  # [..., Lk, Lq]
        if mask is not None:
            dropped = (mask == 0).expand(*columns.shape[:-2], columns.shape[-1], columns.shape[-2]).mT
            columns = columns.masked_fill(dropped, -torch.inf)
        attn = columns.softmax(-2)
        if mask is not None:
            attn = torch.where(dropped.all(-2, keepdim=True), torch.zeros_like(attn), attn)
        kept = torch.nn.functional.dropout(attn, self.p, self.training)
        return torch.matmul(kept.mT, v), attn.mT


def expand_kv(x, num_query_heads):
    if num_query_heads // x.shape[1] * x.shape[1] != num_query_heads:
        raise ValueError("heads")
    heads = []
    for head in x.unbind(1):
        heads += [head] * (num_query_heads // x.shape[1])
    return torch.stack(heads, 1)


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if is_causal and attn_mask is not None:
        raise ValueError("is_causal and attn_mask")
    if enable_gqa:
        if query.shape[-3] % key.shape[-3] != 0:
            raise ValueError("heads")
        n = query.shape[-3] // key.shape[-3]
        key, value = torch.repeat_interleave(key, n, -3), torch.repeat_interleave(value, n, -3)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.matmul(key, query.mT).mT * factor
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        bias, attn_mask = attn_mask, attn_mask != -torch.inf
        scores = scores + torch.where(attn_mask, bias, torch.zeros_like(bias))
    if is_causal:
        attn_mask = query.new_ones(query.shape[-2], key.shape[-2]).tril().bool()
    if attn_mask is None:
        weights = torch.softmax(scores, -1)
    else:
        filled = torch.where(attn_mask, scores, torch.full_like(scores, -torch.inf))
        weights = torch.softmax(filled, -1)
        weights = torch.where(attn_mask, weights, torch.zeros_like(weights))
    if dropout_p > 0:
        keep = torch.empty_like(weights).bernoulli_(1 - dropout_p)
        weights = weights * keep.div_(1 - dropout_p)
    return weights @ value
