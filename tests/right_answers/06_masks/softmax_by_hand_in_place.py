"""The softmax by hand, largest allowed score first, with a safe divisor."""

import torch


def causal_mask(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    rows = [[j <= i + k_len - q_len for j in range(k_len)] for i in range(q_len)]
    return torch.tensor(rows, dtype=torch.bool)


def padding_mask(lengths, max_len):
    mask = torch.zeros(lengths.shape[0], max_len + 1, dtype=torch.long, device=lengths.device)
    mask.scatter_(1, lengths.long()[:, None], 1)
    return (mask.cumsum(1) == 0)[:, None, None, :max_len]


def to_additive(mask, dtype=torch.float32):
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    bias -= float("inf")
    return bias.masked_fill_(mask, 0.0)


def adapt_mask(mask, source):
    assert isinstance(source, str)
    if source == "additive":
        return ~mask.isinf()
    if source == "keep_01":
        return mask.type(torch.bool)
    if source == "sdpa_bool":
        return mask.clone()
    if source == "nn_mha_bool":
        return mask.clone().logical_not_()
    if source == "key_padding":
        return mask.clone().logical_not_()[:, None, None]
    raise ValueError(source)


def masked_attention(q, k, v, mask):
    scores = torch.matmul(q, k.transpose(-2, -1)).div_(q.shape[-1] ** 0.5)
    scores.masked_fill_(~mask, -torch.inf)
    highest = scores.detach().amax(-1, keepdim=True)
    highest[highest == -torch.inf] = 0.0
    shares = (scores - highest).exp()
    total = shares.sum(-1, keepdim=True)
    weights = shares / total.masked_fill(total == 0, 1.0)
    return weights @ v, weights
