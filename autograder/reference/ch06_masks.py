"""Chapter 6: which query may look at which key. True always means "may look"."""

import torch


def causal_mask(q_len, k_len=None):
    """Hide the future: query i of the last `q_len` positions sees the keys up to its own position.

    ->  (q_len, k_len) bool, aligned to the lower right: the last query sees every key.
    """
    k_len = q_len if k_len is None else k_len
    query = torch.arange(q_len)[:, None] + (k_len - q_len)
    return torch.arange(k_len) <= query


def padding_mask(lengths, max_len):
    """True on real tokens.   lengths (B,) integer   ->   (B, 1, 1, max_len) bool"""
    return (torch.arange(max_len, device=lengths.device) < lengths[:, None])[:, None, None, :]


def to_additive(mask, dtype=torch.float32):
    """The bias to add to the scores: 0 where a query may look, -inf elsewhere."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def adapt_mask(mask, source):
    """Translate a mask of another convention into ours."""
    if source == "nn_mha_bool":  # True = drop
        return ~mask
    if source == "additive":  # 0 = keep, -inf = drop
        return mask == 0
    if source == "sdpa_bool":  # True = keep
        return mask.clone()
    if source == "keep_01":  # 1 = keep, 0 = drop
        return mask != 0
    if source == "key_padding":  # (B, Lk), True = drop
        return ~mask[:, None, None, :]
    raise ValueError(f"unknown source {source!r}")


def masked_attention(q, k, v, mask):
    """Attend only where the mask allows it; a query that may look nowhere gets zeros.

    q (..., Lq, d)   k (..., Lk, d)   v (..., Lk, e)   mask (..., Lq, Lk) bool   ->   (..., Lq, e), (..., Lq, Lk)
    """
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    somewhere = mask.any(-1, keepdim=True)
    scores = scores.masked_fill(
        ~mask & somewhere, -torch.inf
    )  # an empty row keeps finite scores: no NaN, no NaN gradient
    weights = torch.softmax(scores, -1).masked_fill(~mask, 0.0)
    return weights @ v, weights
