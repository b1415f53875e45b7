"""Linear layers carry the projections, baddbmm the lookup."""

import torch
import torch.nn.functional as F


def additive_scores(s, h, Wa, Ua, va):
    asks, offers = F.linear(s, Wa), F.linear(h, Ua)
    rows = [torch.tanh(offers + ask.unsqueeze(-2)).matmul(va) for ask in asks.unbind(-2)]
    return torch.stack(rows, dim=-2)


def soft_lookup(q, keys, values, beta=1.0):
    lead = q.shape[:-2]
    q, keys, values = (x.reshape(-1, *x.shape[-2:]) for x in (q, keys, values))
    empty = q.new_zeros(len(q), q.shape[1], keys.shape[1])
    scores = torch.baddbmm(empty, q, keys.transpose(1, 2), beta=0, alpha=beta)
    return torch.bmm(F.softmax(scores, dim=2), values).reshape(*lead, q.shape[1], values.shape[2])


def path_and_cost(kind, n, d, k=None):
    if kind == "conv":
        path = 0
        power = 1
        while not power >= n:
            power = power * k
            path = path + 1
        return {"multiplies": k * n * d * d, "sequential": 1, "path": path}
    try:
        cost, steps = {"attention": (n * n * d, 1), "recurrent": (n * d * d, n)}[kind]
    except KeyError as unknown:
        raise ValueError(f"unknown kind {kind}") from unknown
    return {"multiplies": cost, "sequential": steps, "path": steps}
