"""Chapter 3: scaled dot-product attention, one number at a time, all at once, and backwards."""

import torch


def attention_loops(q, k, v):
    """Mix the values for one query after another: O_i = Σ_j α_ij v_j.

    q (Lq, d)   k (Lk, d)   v (Lk, e)   ->   (Lq, e)
    """
    rows = []
    for query in q:
        scores = torch.stack([query @ key for key in k]) / q.shape[-1] ** 0.5
        alpha = torch.softmax(scores, 0)
        rows.append(sum(share * value for share, value in zip(alpha, v, strict=True)))
    return torch.stack(rows)


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    """Mix the rows of `v` by how well each query matches each key.

    q (..., Lq, d)   k (..., Lk, d)   v (..., Lk, e)   mask (..., Lq, Lk) bool   ->   (..., Lq, e), (..., Lq, Lk)

    mask is True where a query may look; a query that may look nowhere gets zeros. scale is 1/√d unless given.
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.transpose(-2, -1) * scale
    if mask is None:
        weights = torch.softmax(scores, -1)
    else:
        somewhere = mask.any(-1, keepdim=True)
        scores = scores.masked_fill(~mask & somewhere, -torch.inf)  # an empty row keeps finite scores: no NaN gradient
        weights = torch.softmax(scores, -1).masked_fill(~mask, 0.0)
    return weights @ v, weights


def attention_backward(q, k, v, weights, dout):
    """Carry the gradient of the output back to q, k and v, for the scale 1/√d and the `weights` of the forward pass.

    q (..., Lq, d)   k (..., Lk, d)   v (..., Lk, e)   weights (..., Lq, Lk)   dout (..., Lq, e)   ->   as q, k, v
    """
    dv = weights.transpose(-2, -1) @ dout
    dweights = dout @ v.transpose(-2, -1)
    mean = (weights * dweights).sum(-1, keepdim=True)  # what the normalisation takes back
    dscores = weights * (dweights - mean) / q.shape[-1] ** 0.5
    return dscores @ k, dscores.transpose(-2, -1) @ q, dv
