"""The scale as a tensor, which PyTorch makes in float32; masks from `torch.tril` and a table of sources."""

import torch


def causal_mask(q_len, k_len=None):
    k_len = k_len or q_len
    return torch.tril(torch.ones((q_len, k_len)), diagonal=k_len - q_len).bool()


def padding_mask(lengths, max_len):
    positions = torch.arange(max_len, device=lengths.device).expand(len(lengths), max_len)
    return torch.lt(positions, lengths.unsqueeze(1)).unsqueeze(1).unsqueeze(2)


def to_additive(mask, dtype=torch.float32):
    bias = torch.zeros_like(mask, dtype=dtype)
    bias[~mask] = float("-inf")
    return bias


SOURCES = {
    "nn_mha_bool": torch.logical_not,
    "additive": lambda mask: mask.eq(0),
    "sdpa_bool": lambda mask: mask.clone(),
    "keep_01": lambda mask: mask.bool(),
    "key_padding": lambda mask: torch.logical_not(mask).reshape(mask.size(0), 1, 1, -1),
}


def adapt_mask(mask, source):
    if source not in SOURCES:
        raise ValueError(source)
    return SOURCES[source](mask)


def masked_attention(q, k, v, mask):
    scores = torch.matmul(q, k.transpose(-1, -2)) / torch.sqrt(torch.tensor(k.size(-1), dtype=torch.float32))
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(scores.softmax(dim=-1))
    return weights.matmul(v), weights
