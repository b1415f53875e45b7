"""The short way: fill with −inf, take the softmax, and turn the NaN of an empty row into 0."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.temperature = temperature
        self.dropout = nn.Dropout(attn_dropout)

    def forward(self, q, k, v, mask=None):
        attn = torch.matmul(q / self.temperature, k.transpose(-2, -1))
        if mask is not None:
            attn = attn.masked_fill(mask == 0, float("-inf"))
        attn = F.softmax(attn, dim=-1)
        if mask is not None:
            attn = attn.nan_to_num(0.0)
        return torch.matmul(self.dropout(attn), v), attn


def expand_kv(x, num_query_heads):
    if num_query_heads % x.size(1) != 0:
        raise ValueError("heads do not divide")
    return torch.repeat_interleave(x, num_query_heads // x.size(1), dim=1)


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    L, S = query.size(-2), key.size(-2)
    scale_factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    if is_causal:
        if attn_mask is not None:
            raise ValueError("attn_mask and is_causal")
        attn_mask = torch.ones(L, S, dtype=torch.bool, device=query.device).tril(diagonal=0)
    if enable_gqa:
        if query.size(-3) % key.size(-3):
            raise ValueError("heads do not divide")
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    attn_weight = query @ key.transpose(-2, -1) * scale_factor
    if attn_mask is not None:
        if attn_mask.dtype != torch.bool:
            attn_weight = attn_weight + attn_mask.masked_fill(attn_mask == float("-inf"), 0.0)
            attn_mask = attn_mask != float("-inf")
        attn_weight = attn_weight.masked_fill(attn_mask.logical_not(), float("-inf"))
    attn_weight = torch.softmax(attn_weight, dim=-1)
    if attn_mask is not None:
        attn_weight = attn_weight.nan_to_num(0.0)
    return F.dropout(attn_weight, dropout_p) @ value
