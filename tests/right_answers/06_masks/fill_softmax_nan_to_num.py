"""The short way: fill with −inf, take the softmax, and turn the NaN of an empty row into 0."""

import torch


def causal_mask(q_len, k_len=None):
    k_len = k_len if k_len is not None else q_len
    future = torch.triu(torch.ones(q_len, k_len), diagonal=1 + k_len - q_len)
    return future == 0


def padding_mask(lengths, max_len):
    mask = torch.arange(max_len).to(lengths.device)[None] < lengths[:, None]
    return mask.reshape(-1, 1, 1, max_len)


def to_additive(mask, dtype=torch.float32):
    return mask.to(dtype).log()


def adapt_mask(mask, source):
    if source == "nn_mha_bool":
        return mask == False  # noqa: E712
    elif source == "additive":
        return mask.exp().bool()
    elif source == "sdpa_bool":
        return mask == True  # noqa: E712
    elif source == "keep_01":
        return mask == 1
    elif source == "key_padding":
        return (mask == 0)[:, None, None, :]
    else:
        raise ValueError("unknown source")


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    weights = scores.masked_fill(mask.logical_not(), float("-inf")).softmax(-1).nan_to_num(0.0)
    return weights @ v, weights
