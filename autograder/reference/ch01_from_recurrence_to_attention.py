"""Chapter 1: what attention was before dot products, what it looks up, and what it costs beside its rivals."""

import torch


def additive_scores(s, h, Wa, Ua, va):
    """Score each state of the decoder against each state of the encoder with a small network (Bahdanau).

    s (..., Lq, ds)   h (..., Lk, dh)   Wa (da, ds)   Ua (da, dh)   va (da)   ->   (..., Lq, Lk)
    """
    asks = (s @ Wa.T).unsqueeze(-2)  # (..., Lq, 1, da)
    offers = (h @ Ua.T).unsqueeze(-3)  # (..., 1, Lk, da)
    return torch.tanh(asks + offers) @ va


def soft_lookup(q, keys, values, beta=1.0):
    """Look up by resemblance: every value answers, the closest key loudest, and the louder the larger `beta`.

    q (..., Lq, d)   keys (..., Lk, d)   values (..., Lk, dv)   ->   (..., Lq, dv)
    """
    return torch.softmax(beta * (q @ keys.transpose(-2, -1)), -1) @ values


def path_and_cost(kind, n, d, k=None):
    """The leading terms of one layer on `n` tokens of width `d`; `k` >= 2 is the window of a convolution.

    The path of the convolution counts layers: how often a window must widen k-fold to span n. Whole numbers only,
    for a logarithm in floating point makes 4 layers of log_5 125 = 3.
    """
    if kind == "attention":
        return {"multiplies": n * n * d, "sequential": 1, "path": 1}
    if kind == "recurrent":
        return {"multiplies": n * d * d, "sequential": n, "path": n}
    if kind == "conv":
        layers, reach = 0, 1
        while reach < n:
            layers, reach = layers + 1, reach * k
        return {"multiplies": k * n * d * d, "sequential": 1, "path": layers}
    raise ValueError(f"unknown kind {kind!r}")
