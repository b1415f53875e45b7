"""Everything in double precision, given back in the dtype that came in; floats of equal value as counts."""

import torch


def additive_scores(s, h, Wa, Ua, va):
    asks, offers = s.double() @ Wa.double().mT, h.double() @ Ua.double().mT
    hidden = torch.tanh(asks[..., None, :] + offers[..., None, :, :])
    return (hidden * va.double()).sum(-1).to(s.dtype)


def soft_lookup(q, keys, values, beta=1.0):
    scores = beta * (q.double() @ keys.double().mT)
    shares = torch.exp(scores - scores.amax(-1, keepdim=True))
    return ((shares / shares.sum(-1, keepdim=True)) @ values.double()).to(values.dtype)


def path_and_cost(kind, n, d, k=None):
    n, d = float(n), float(d)
    if kind == "attention":
        return {"multiplies": n * n * d, "sequential": 1.0, "path": 1.0}
    if kind == "recurrent":
        return {"multiplies": n * d * d, "sequential": n, "path": n}
    if kind != "conv":
        raise ValueError(kind)
    path = 0.0
    while k**path < n:
        path += 1
    return {"multiplies": k * n * d * d, "sequential": 1.0, "path": path}
