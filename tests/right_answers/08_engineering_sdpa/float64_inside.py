"""Computes in float64 and gives back the dtype it got; softmax as exp(x − logsumexp(x)); own dropout with a mask of 0 and 1."""

import torch
from torch import nn


def _softmax(x, allowed):
    if allowed is None:
        return (x - x.logsumexp(-1, keepdim=True)).exp()
    empty = ~allowed.any(-1, keepdim=True)
    x = x.masked_fill(~allowed & ~empty, -torch.inf)
    return (x - x.logsumexp(-1, keepdim=True)).exp() * allowed


def _drop(x, p):
    if not p:
        return x
    noise = torch.rand(x.shape, device=x.device)
    return torch.where(noise < p, torch.zeros_like(x), x / (1 - p))


class ScaledDotProductAttention(nn.Module):
    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.temperature = temperature
        self.attn_dropout = attn_dropout

    def forward(self, q, k, v, mask=None):
        scores = q.double() @ k.double().transpose(-1, -2) / self.temperature
        attn = _softmax(scores, None if mask is None else mask.to(torch.bool))
        out = _drop(attn, self.attn_dropout if self.training else 0.0) @ v.double()
        return out.to(q.dtype), attn.to(q.dtype)


def expand_kv(x, num_query_heads):
    copies = num_query_heads // x.shape[1]
    if copies * x.shape[1] != num_query_heads:
        raise ValueError("KV heads must divide query heads")
    return x.unsqueeze(2).repeat(1, 1, copies, 1, 1).flatten(1, 2)


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if is_causal and attn_mask is not None:
        raise ValueError("is_causal with attn_mask")
    q, k, v = query.double(), key.double(), value.double()
    if enable_gqa:
        copies = q.shape[-3] // k.shape[-3]
        if copies * k.shape[-3] != q.shape[-3]:
            raise ValueError("KV heads must divide query heads")
        k = k.unsqueeze(-3).expand(*k.shape[:-2], copies, *k.shape[-2:]).flatten(-4, -3)
        v = v.unsqueeze(-3).expand(*v.shape[:-2], copies, *v.shape[-2:]).flatten(-4, -3)
    scores = q @ k.transpose(-1, -2)
    scores = scores / q.shape[-1] ** 0.5 if scale is None else scores * scale
    allowed = attn_mask
    if is_causal:
        allowed = ~torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    elif attn_mask is not None and attn_mask.is_floating_point():
        allowed = attn_mask.exp() > 0
        scores = scores + attn_mask.double().nan_to_num(neginf=0.0)
    return (_drop(_softmax(scores, allowed), dropout_p) @ v).to(query.dtype)
