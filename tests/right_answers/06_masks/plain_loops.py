"""Every position by itself, in plain Python loops."""

import math

import torch


def causal_mask(q_len, k_len=None):
    if k_len is None:
        k_len = q_len
    mask = torch.zeros(q_len, k_len, dtype=torch.bool)
    for i in range(q_len):
        for j in range(k_len):
            if j - k_len <= i - q_len:
                mask[i, j] = True
    return mask


def padding_mask(lengths, max_len):
    mask = torch.zeros(len(lengths), 1, 1, max_len, dtype=torch.bool, device=lengths.device)
    for b, length in enumerate(lengths.tolist()):
        mask[b, :, :, :length] = True
    return mask


def to_additive(mask, dtype=torch.float32):
    values = [0.0 if allowed else -math.inf for allowed in mask.flatten().tolist()]
    return torch.tensor(values, dtype=dtype, device=mask.device).reshape(mask.shape)


def adapt_mask(mask, source):
    keeps = {
        "nn_mha_bool": lambda x: not x,
        "additive": lambda x: x == 0,
        "sdpa_bool": bool,
        "keep_01": lambda x: x == 1,
        "key_padding": lambda x: not x,
    }
    if source not in keeps:
        raise ValueError(f"I do not know {source}")
    ours = torch.tensor([keeps[source](x) for x in mask.flatten().tolist()], dtype=torch.bool, device=mask.device)
    ours = ours.reshape(mask.shape)
    return ours.reshape(len(mask), 1, 1, -1) if source == "key_padding" else ours


def masked_attention(q, k, v, mask):
    *lead, q_len, width = q.shape
    k_len, depth = v.shape[-2:]
    mask = mask.expand(*lead, q_len, k_len).reshape(-1, q_len, k_len)
    queries, keys, values = q.reshape(-1, q_len, width), k.reshape(-1, k_len, width), v.reshape(-1, k_len, depth)
    all_out, all_weights = [], []
    for n in range(len(queries)):
        for i in range(q_len):
            row = [torch.zeros_like(queries[n, i, 0]) for _ in range(k_len)]
            allowed = [j for j in range(k_len) if mask[n, i, j]]
            if allowed:
                scores = [(queries[n, i] * keys[n, j]).sum() / math.sqrt(width) for j in allowed]
                highest = max(score.item() for score in scores)
                shares = [torch.exp(score - highest) for score in scores]
                total = sum(shares)
                for j, share in zip(allowed, shares, strict=True):
                    row[j] = share / total
            all_weights.append(torch.stack(row))
            all_out.append(sum(row[j] * values[n, j] for j in range(k_len)))
    return torch.stack(all_out).reshape(*lead, q_len, depth), torch.stack(all_weights).reshape(*lead, q_len, k_len)
