"""Calculate in float64 and cast back at the end."""

import torch


def causal_mask(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    seen = torch.arange(q_len, dtype=torch.float64) + (k_len - q_len) + 0.5
    return torch.arange(k_len, dtype=torch.float64).expand(q_len, k_len) < seen.view(q_len, 1)


def padding_mask(lengths, max_len):
    return torch.stack([torch.arange(max_len, device=lengths.device) < n for n in lengths])[:, None, None]


def to_additive(mask, dtype=torch.float32):
    return torch.where(mask, 0.0, float("-inf")).to(dtype)


def adapt_mask(mask, source):
    known = ["nn_mha_bool", "additive", "sdpa_bool", "keep_01", "key_padding"]
    if source not in known:
        raise ValueError(f"{source} is none of {known}")
    drops_where_true = source in ("nn_mha_bool", "key_padding")
    ours = mask.double() >= 0 if source == "additive" else (mask.double() > 0.5) ^ drops_where_true
    return ours[:, None, None, :] if source == "key_padding" else ours


def masked_attention(q, k, v, mask):
    dtype = q.dtype
    q, k, v = q.double(), k.double(), v.double()
    scores = (q / q.shape[-1] ** 0.25) @ (k / k.shape[-1] ** 0.25).transpose(-2, -1)
    scores = scores.masked_fill(~mask, -1e300)
    weights = torch.softmax(scores, -1) * mask.any(-1, keepdim=True)
    return (weights @ v).to(dtype), weights.to(dtype)
