"""A bias of 0 and −inf, after the rows that allow nothing were opened and before they are shut again."""

import torch
import torch.nn.functional as F


def causal_mask(q_len, k_len=None):
    if k_len is None:
        k_len = q_len
    return torch.ones((q_len, k_len), dtype=torch.bool).tril(diagonal=k_len - q_len)


def padding_mask(lengths, max_len):
    positions = torch.arange(max_len, device=lengths.device).expand(lengths.shape[0], max_len)
    return positions.lt(lengths.unsqueeze(1)).unsqueeze(1).unsqueeze(2)


def to_additive(mask, dtype=torch.float32):
    bias = torch.zeros_like(mask, dtype=dtype)
    bias[~mask] = float("-inf")
    return bias


def adapt_mask(mask, source):
    if source == "key_padding":
        mask, source = mask[:, None, None], "nn_mha_bool"
    if source == "nn_mha_bool":
        return ~mask
    if source == "additive":
        return mask > float("-inf")
    if source in ("sdpa_bool", "keep_01"):
        return mask.bool()
    raise ValueError(f"source must be one of five names, not {source!r}")


def masked_attention(q, k, v, mask):
    blind = ~mask.any(dim=-1, keepdim=True)
    bias = to_additive(mask | blind, q.dtype)
    weights = F.softmax(torch.matmul(q, k.mT) / q.shape[-1] ** 0.5 + bias, dim=-1)
    weights = weights * ~blind
    return torch.matmul(weights, v), weights
