"""Sixteen bits are computed in 32; batch axes are flattened for bmm; normal numbers decide who stays."""

import torch


def attention_dropout(weights, p, training, generator=None):
    if p > 1 or p < 0:
        raise ValueError(f"p = {p}")
    if not training or p == 0:
        return weights + 0
    if p == 1:
        return weights - weights
    limit = torch.special.ndtri(torch.tensor(p, dtype=torch.float64)).item()
    stays = torch.randn(weights.shape, generator=generator, device=weights.device) > limit
    return torch.where(stays, weights.div(1 - p), torch.zeros_like(weights))


def attention_with_dropout(q, k, v, p, training, mask=None, generator=None):
    inner = torch.promote_types(q.dtype, torch.float32)
    lead = q.shape[:-2]
    a, b, c = (x.reshape(-1, *x.shape[-2:]).to(inner) for x in (q, k, v))
    scores = torch.bmm(a, b.transpose(1, 2)).mul(a.shape[-1] ** -0.5).unflatten(0, lead or (1,))
    scores = scores if lead else scores[0]
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1).nan_to_num(nan=0.0)
    used = attention_dropout(weights, p, training, generator)
    out = torch.bmm(used.reshape(-1, *used.shape[-2:]), c)
    return out.reshape(*lead, *out.shape[-2:]).to(q.dtype), weights.to(q.dtype)
