"""Weights as exp(score − logsumexp), with a harmless 0 in place of the logsumexp of nothing."""

import torch


def causal_mask(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    return torch.tril(torch.full((q_len, k_len), True), k_len - q_len)


def padding_mask(lengths, max_len):
    return lengths[:, None, None, None] > torch.arange(max_len, device=lengths.device)


def to_additive(mask, dtype=torch.float32):
    bias = torch.empty(mask.shape, dtype=dtype, device=mask.device)
    bias.fill_(-torch.inf)
    bias[mask] = 0
    return bias


def adapt_mask(mask, source):
    if source == "sdpa_bool":
        return mask | mask
    if source == "keep_01":
        return mask > 0
    if source == "additive":
        return mask != -torch.inf
    if source == "nn_mha_bool":
        return mask ^ True
    if source == "key_padding":
        return adapt_mask(mask, "nn_mha_bool").unsqueeze(-2).unsqueeze(-2)
    raise ValueError(source)


def masked_attention(q, k, v, mask):
    scores = (q @ k.mT) * (1 / q.shape[-1]) ** 0.5
    scores = scores.masked_fill(~mask, -torch.inf)
    total = torch.logsumexp(scores, -1, keepdim=True)
    total = total.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    weights = torch.exp(scores - total)
    return weights @ v, weights
