"""Scores as [keys, queries], the softmax over the keys' axis, and everything transposed back at the end."""

import torch


def causal_mask(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    return torch.ones(k_len, q_len, dtype=torch.bool).triu(q_len - k_len).t()


def padding_mask(lengths, max_len):
    by_position = torch.arange(max_len, device=lengths.device)[:, None] < lengths
    return by_position.t()[:, None, None]


def to_additive(mask, dtype=torch.float32):
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask == 0, float("-inf"))


def adapt_mask(mask, source):
    class Conventions:
        nn_mha_bool = staticmethod(lambda: ~mask)
        additive = staticmethod(lambda: mask == 0)
        sdpa_bool = staticmethod(lambda: mask)
        keep_01 = staticmethod(lambda: mask == 1)
        key_padding = staticmethod(lambda: ~mask.view(mask.shape[0], 1, 1, mask.shape[1]))

    convert = getattr(Conventions, source, None)
    if convert is None:
        raise ValueError(f"no such convention: {source}")
    return convert()


def masked_attention(q, k, v, mask):
    seen = mask.transpose(-2, -1)
    scores = k @ q.transpose(-2, -1) / q.shape[-1] ** 0.5
    blind = ~seen.any(dim=-2, keepdim=True)
    scores = scores.masked_fill(~(seen | blind), float("-inf"))
    weights = scores.softmax(dim=-2).masked_fill(blind, 0.0)
    out = v.transpose(-2, -1) @ weights
    return out.transpose(-2, -1), weights.transpose(-2, -1)
