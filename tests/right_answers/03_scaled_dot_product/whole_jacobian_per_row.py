"""The softmax's Jacobian diag(w) − w wᵀ is written out for each row, head after head."""

import torch


def attention_loops(q, k, v):
    def row(query):
        scores = torch.tensor([query.mul(key).sum() for key in k], dtype=q.dtype).div(query.numel() ** 0.5)
        alpha = scores.sub(scores.max()).exp()
        return alpha.div(alpha.sum()).unsqueeze(1).mul(v).sum(0)

    return torch.stack([row(query) for query in q])


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    lead = q.shape[:-2]
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (q, k, v)]
    masks = [None] * len(flat[0])
    if mask is not None:
        masks = mask.expand(*q.shape[:-1], k.shape[-2]).reshape(-1, q.shape[-2], k.shape[-2])
    heads = [_head(*inputs, scale) for inputs in zip(*flat, masks, strict=True)]
    out = torch.stack([out for out, _ in heads]).reshape(*lead, *heads[0][0].shape)
    return out, torch.stack([weights for _, weights in heads]).reshape(*lead, *heads[0][1].shape)


def _head(q, k, v, mask, scale):
    scores = torch.mm(q, k.t())
    scores = scores / q.shape[1] ** 0.5 if scale is None else scores * scale
    if mask is not None:
        scores[~mask] = float("-inf")
    weights = torch.softmax(scores, 1)
    if mask is not None:
        weights = torch.where(mask, weights, 0.0)
    return torch.mm(weights, v), weights


def attention_backward(q, k, v, weights, dout):
    jacobian = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
    dweights = dout @ v.transpose(-2, -1)
    dscores = (jacobian @ dweights.unsqueeze(-1)).squeeze(-1)
    root = torch.tensor(q.shape[-1], dtype=q.dtype).sqrt()
    return dscores @ k / root, dscores.transpose(-2, -1) @ q / root, weights.transpose(-2, -1) @ dout
