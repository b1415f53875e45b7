"""Chapter 8: attention as it is used, with masks of every form, dropout, a scale of one's own and shared KV heads."""

import torch
from torch import nn


def softmax_where(scores, allowed=None):
    """Softmax over the keys a query may look at; a query that may look nowhere gets zeros, and no NaN gradient."""
    if allowed is None:
        return torch.softmax(scores, -1)
    somewhere = allowed.any(-1, keepdim=True)
    scores = scores.masked_fill(~allowed & somewhere, -torch.inf)  # an empty row keeps finite scores
    return torch.softmax(scores, -1).masked_fill(~allowed, 0.0)


class ScaledDotProductAttention(nn.Module):
    """Attention with a temperature and dropout on the weights.

    q (..., Lq, d)   k (..., Lk, d)   v (..., Lk, e)   ->   (..., Lq, e), (..., Lq, Lk)

    mask, of any dtype, is 0 where a key is dropped. The weights are returned before dropout.
    """

    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.temperature = temperature
        self.dropout = nn.Dropout(attn_dropout)

    def forward(self, q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / self.temperature
        attn = softmax_where(scores, None if mask is None else mask != 0)
        return self.dropout(attn) @ v, attn


def expand_kv(x, num_query_heads):
    """Write every KV head out once for each query head that reads it: query head h reads head h // (H/G).

    x (B, G, L, D)   ->   (B, H, L, D)
    """
    return _written_out(x, num_query_heads, 1)


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """PyTorch's function, as documented.

    query (..., H, L, d)   key (..., G, S, d)   value (..., G, S, e)   ->   (..., H, L, e)

    attn_mask broadcasts to (..., H, L, S): a bool mask is True where a query may look, a float mask is added to the
    scores. is_causal aligns to the upper left. dropout_p always acts. A query that may look nowhere gets zeros.
    """
    if attn_mask is not None and is_causal:
        raise ValueError("give attn_mask or is_causal, not both")
    if enable_gqa:
        key, value = (_written_out(x, query.shape[-3], -3) for x in (key, value))
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    allowed = attn_mask
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    elif attn_mask is not None and attn_mask.is_floating_point():
        allowed = attn_mask != -torch.inf
        scores = scores + attn_mask.masked_fill(~allowed, 0.0)  # -inf is forbidden here, not added: finite gradients
    weights = softmax_where(scores, allowed)
    return torch.dropout(weights, dropout_p, train=True) @ value


def _written_out(x, heads, axis):
    groups = x.shape[axis]
    if heads % groups:
        raise ValueError(f"{groups} KV heads do not divide {heads} query heads")
    return x.repeat_interleave(heads // groups, axis)
