"""Everything in index notation; empty rows are cleaned with nan_to_num."""

import torch


def attention_loops(q, k, v):
    rows = []
    for i in range(len(q)):
        alpha = torch.einsum("d,jd->j", q[i], k).div(q.size(1) ** 0.5).softmax(0)
        rows.append(torch.einsum("j,je->e", alpha, v))
    return torch.stack(rows)


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    scale = q.size(-1) ** -0.5 if scale is None else scale
    scores = torch.einsum("...id,...jd->...ij", q, k) * scale
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return torch.einsum("...ij,...je->...ie", weights, v), weights


def attention_backward(q, k, v, weights, dout):
    dweights = torch.einsum("...ie,...je->...ij", dout, v)
    inner = torch.einsum("...ij,...ij->...i", weights, dweights)
    dscores = weights * (dweights - inner[..., None]) * q.size(-1) ** -0.5
    dq = torch.einsum("...ij,...jd->...id", dscores, k)
    dk = torch.einsum("...ij,...id->...jd", dscores, q)
    return dq, dk, torch.einsum("...ij,...ie->...je", weights, dout)
