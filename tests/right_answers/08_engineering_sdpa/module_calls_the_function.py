"""The module leans on the function, which returns its weights through a helper; softmax by hand, in place."""

import torch
from torch import nn


def _weights(scores, allowed):
    if allowed is not None:
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    shares = torch.exp(scores - scores.amax(-1, keepdim=True).detach())
    if allowed is not None:
        shares = shares * allowed
    total = shares.sum(-1, keepdim=True)
    return shares / torch.where(total == 0, torch.ones_like(total), total)


def _attend(query, key, value, factor, allowed=None, bias=None, p=0.0):
    scores = query @ key.swapaxes(-1, -2) * factor
    if bias is not None:
        scores = scores + bias
    weights = _weights(scores, allowed)
    return nn.Dropout(p).train()(weights) @ value, weights


class ScaledDotProductAttention(nn.Module):
    def __init__(self, temperature, attn_dropout=0.1):
        nn.Module.__init__(self)
        self.scale = 1.0 / temperature
        self.attn_dropout = attn_dropout

    def forward(self, q, k, v, mask=None):
        p = self.attn_dropout if self.training else 0.0
        return _attend(q, k, v, self.scale, None if mask is None else mask.ne(0), p=p)


def expand_kv(x, num_query_heads):
    if num_query_heads % x.shape[1]:
        raise ValueError("G must divide H")
    return torch.kron(x.transpose(0, 1).flatten(1), x.new_ones(num_query_heads // x.shape[1], 1)).unflatten(
        1, (x.shape[0], *x.shape[2:])
    ).transpose(0, 1)  # fmt: skip


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None and is_causal:
        raise ValueError("attn_mask or is_causal")
    factor = scale if scale is not None else query.shape[-1] ** -0.5
    if enable_gqa:
        if query.shape[-3] % key.shape[-3]:
            raise ValueError("G must divide H")
        times = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(times, dim=-3), value.repeat_interleave(times, dim=-3)
    allowed, bias = attn_mask, None
    if is_causal:
        L, S = query.shape[-2], key.shape[-2]
        allowed = torch.ones((L, S), device=query.device).tril() > 0
    elif attn_mask is not None and attn_mask.dtype != torch.bool:
        allowed = torch.isfinite(attn_mask)
        bias = attn_mask.masked_fill(~allowed, 0.0)
    return _attend(query, key, value, factor, allowed, bias, dropout_p)[0]
