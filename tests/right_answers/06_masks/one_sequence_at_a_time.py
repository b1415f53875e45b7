"""A small function for one query, lifted over queries by a comprehension and over batches by recursion."""

import torch


def causal_mask(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    numbers = torch.arange(q_len + k_len)
    return numbers[:k_len] - k_len <= numbers[:q_len, None] - q_len


def padding_mask(lengths, max_len):
    rows = [torch.tensor([True] * n + [False] * (max_len - n), device=lengths.device) for n in lengths.tolist()]
    return torch.stack(rows).unflatten(0, (-1, 1, 1))


def to_additive(mask, dtype=torch.float32):
    return torch.log(mask.to(torch.float64)).to(dtype)


def adapt_mask(mask, source):
    sources = dict.fromkeys(("nn_mha_bool", "key_padding"), True) | dict.fromkeys(("sdpa_bool", "keep_01"), False)
    if source == "additive":
        return mask.eq(0)
    if source not in sources:
        raise ValueError(f"{source!r} is not a convention of this chapter")
    ours = mask.bool() != sources[source]
    return ours.unflatten(0, (-1, 1, 1)) if source == "key_padding" else ours


def one_query(q, k, v, allowed):
    weights = torch.zeros(len(k), dtype=q.dtype, device=q.device)
    if not allowed.any():
        return 0 * q.sum() + torch.zeros_like(v[0]), weights
    scores = (k[allowed] @ q) / len(q) ** 0.5
    weights = weights.masked_scatter(allowed, scores.softmax(0))
    return weights[allowed] @ v[allowed], weights


def masked_attention(q, k, v, mask):
    mask = mask.expand(*q.shape[:-1], k.shape[-2])
    if q.dim() > 2:
        pairs = [masked_attention(*item) for item in zip(q, k, v, mask, strict=True)]
    else:
        pairs = [one_query(query, k, v, allowed) for query, allowed in zip(q, mask, strict=True)]
    outs, weights = zip(*pairs, strict=True)
    return torch.stack(outs), torch.stack(weights)
