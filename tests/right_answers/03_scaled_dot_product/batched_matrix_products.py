"""Fold the batch axes into one, use baddbmm and bmm, unfold at the end."""

import torch


def _fold(x):
    return x.reshape(-1, *x.shape[-2:])


def attention_loops(q, k, v):
    out = q.new_empty(q.shape[0], v.shape[1])
    for i, query in enumerate(q):
        alpha = torch.mv(k, query).div_(q.shape[1] ** 0.5).softmax(0)
        out[i] = torch.mv(v.t(), alpha)
    return out


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    lead, lq, lk = q.shape[:-2], q.shape[-2], k.shape[-2]
    factor = 1.0 / q.shape[-1] ** 0.5 if scale is None else scale
    q3, k3, v3 = _fold(q), _fold(k), _fold(v)
    bias = q.new_zeros(q3.shape[0], lq, lk)
    if mask is not None:
        allowed = _fold(mask.expand(*lead, lq, lk))
        bias = bias.masked_fill(~allowed & allowed.any(-1, keepdim=True), -torch.inf)
    weights = torch.baddbmm(bias, q3, k3.transpose(1, 2), alpha=factor).softmax(-1)
    if mask is not None:
        weights = weights * allowed
    return torch.bmm(weights, v3).reshape(*lead, lq, v.shape[-1]), weights.reshape(*lead, lq, lk)


def attention_backward(q, k, v, weights, dout):
    q3, k3, v3, w3, do3 = (_fold(x) for x in (q, k, v, weights, dout))
    delta = (torch.bmm(w3, v3) * do3).sum(-1, keepdim=True)
    dscores = w3 * (torch.bmm(do3, v3.transpose(1, 2)) - delta)
    nothing = q.new_zeros(())
    factor = q.shape[-1] ** -0.5
    dq = torch.baddbmm(nothing, dscores, k3, alpha=factor)
    dk = torch.baddbmm(nothing, dscores.transpose(1, 2), q3, alpha=factor)
    dv = torch.bmm(w3.transpose(1, 2), do3)
    return dq.view(q.shape), dk.view(k.shape), dv.view(v.shape)
