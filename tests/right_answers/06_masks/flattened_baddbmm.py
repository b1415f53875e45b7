"""All leading axes in one, and baddbmm adds the bias while it multiplies."""

import math

import torch


def causal_mask(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    position = torch.arange(k_len - q_len, k_len)
    return position.unsqueeze(1).ge(torch.arange(k_len).unsqueeze(0))


def padding_mask(lengths, max_len):
    ones = torch.ones(len(lengths), max_len, dtype=torch.long, device=lengths.device)
    return (ones.cumsum(1) <= lengths.unsqueeze(1)).view(-1, 1, 1, max_len)


def to_additive(mask, dtype=torch.float32):
    return torch.full(mask.shape, -math.inf, dtype=dtype, device=mask.device).masked_fill_(mask, 0)


def adapt_mask(mask, source):
    def key_padding(m):
        b, n = m.shape
        return m.logical_not().view(b, 1, 1, n)

    table = {
        "nn_mha_bool": torch.logical_not,
        "additive": lambda m: ~torch.isneginf(m),
        "sdpa_bool": torch.clone,
        "keep_01": lambda m: m.ne(0),
        "key_padding": key_padding,
    }
    try:
        return table[source](mask)
    except KeyError:
        raise ValueError(f"unknown source: {source}") from None


def masked_attention(q, k, v, mask):
    lead, q_len, k_len = q.shape[:-2], q.shape[-2], k.shape[-2]
    mask = mask.expand(*lead, q_len, k_len).reshape(-1, q_len, k_len)
    blind = ~mask.any(-1, keepdim=True)
    bias = to_additive(mask | blind, q.dtype)
    queries, keys, values = q.reshape(-1, *q.shape[-2:]), k.reshape(-1, *k.shape[-2:]), v.reshape(-1, *v.shape[-2:])
    scores = torch.baddbmm(bias, queries, keys.transpose(1, 2), alpha=1 / math.sqrt(q.shape[-1]))
    weights = torch.softmax(scores, -1).masked_fill(blind, 0)
    return torch.bmm(weights, values).reshape(*lead, q_len, -1), weights.reshape(*lead, q_len, k_len)
