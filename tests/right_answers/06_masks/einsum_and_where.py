"""Einsum for the products, torch.where for every choice."""

import torch


def causal_mask(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    i, j = torch.meshgrid(torch.arange(q_len), torch.arange(k_len), indexing="ij")
    return i - j >= q_len - k_len


def padding_mask(lengths, max_len):
    steps = torch.arange(max_len, device=lengths.device).view(1, 1, 1, -1)
    return steps < lengths.view(-1, 1, 1, 1)


def to_additive(mask, dtype=torch.float32):
    zero = torch.zeros((), dtype=dtype, device=mask.device)
    return torch.where(mask, zero, torch.full_like(zero, float("-inf")))


def adapt_mask(mask, source):
    match source:
        case "nn_mha_bool":
            return torch.logical_not(mask)
        case "additive":
            return torch.isfinite(mask)
        case "sdpa_bool":
            return mask
        case "keep_01":
            return mask.to(torch.bool)
        case "key_padding":
            return torch.logical_not(mask).unsqueeze(1).unsqueeze(1)
        case _:
            raise ValueError(source)


def masked_attention(q, k, v, mask):
    scores = torch.einsum("...id,...jd->...ij", q, k) * q.size(-1) ** -0.5
    hidden = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = torch.where(mask, torch.softmax(hidden, dim=-1), 0.0)
    return torch.einsum("...ij,...je->...ie", weights, v), weights
