"""Everything the other way up: columns are queries, softmax over dim −2, and the results are turned back."""

import torch


def _t(x):
    return x.transpose(-2, -1)


def attention_loops(q, k, v):
    columns = torch.stack([torch.softmax(k @ q[i] * q.shape[1] ** -0.5, 0) for i in range(q.shape[0])], dim=1)
    return (v.T @ columns).T.contiguous()


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    share = abs(q.shape[-1] ** -0.5 if scale is None else scale) ** 0.5  # half of the scale to each side
    scores = (k * share) @ _t(q * share)
    if mask is None:
        weights = torch.softmax(scores, -2)
    else:
        allowed = _t(mask)
        scores = scores.masked_fill(~allowed, -torch.inf)
        top = scores.detach().amax(-2, keepdim=True).nan_to_num(neginf=0.0)
        powers = (scores - top).exp()
        total = powers.sum(-2, keepdim=True)
        weights = powers / torch.where(total > 0, total, torch.ones_like(total))
    return _t(_t(v) @ weights), _t(weights)


def attention_backward(q, k, v, weights, dout):
    w = _t(weights)
    g = v @ _t(dout)
    s = w * (g - (w * g).sum(-2, keepdim=True)) / q.shape[-1] ** 0.5
    return _t(_t(k) @ s), _t(_t(q) @ _t(s)), _t(_t(dout) @ weights)
