"""Every pair by itself, in plain Python loops."""

import math

import torch


def additive_scores(s, h, Wa, Ua, va):
    *lead, q_len, ds = s.shape
    k_len, dh = h.shape[-2:]
    states, memories = s.reshape(-1, q_len, ds), h.reshape(-1, k_len, dh)
    scores = []
    for queries, keys in zip(states, memories, strict=True):
        for query in queries:
            for key in keys:
                hidden = torch.tanh(Wa.mv(query) + Ua.mv(key))
                scores.append(sum(weight * x for weight, x in zip(va, hidden, strict=True)))
    return torch.stack(scores).reshape(*lead, q_len, k_len)


def soft_lookup(q, keys, values, beta=1.0):
    *lead, q_len, width = q.shape
    k_len, depth = values.shape[-2:]
    rows = []
    for queries, ks, vs in zip(
        q.reshape(-1, q_len, width), keys.reshape(-1, k_len, width), values.reshape(-1, k_len, depth), strict=True
    ):
        for query in queries:
            scores = [beta * query.dot(key) for key in ks]
            highest = max(score.item() for score in scores)
            shares = [torch.exp(score - highest) for score in scores]
            total = sum(shares)
            rows.append(sum(share / total * value for share, value in zip(shares, vs, strict=True)))
    return torch.stack(rows).reshape(*lead, q_len, depth)


def path_and_cost(kind, n, d, k=None):
    if kind not in ("attention", "recurrent", "conv"):
        raise ValueError(f"no such layer: {kind}")
    answer = {"sequential": 1, "path": 1}
    if kind == "attention":
        answer["multiplies"] = n * n * d
    elif kind == "recurrent":
        answer.update(multiplies=n * d * d, sequential=n, path=n)
    else:
        answer.update(multiplies=k * n * d * d, path=math.ceil(round(math.log(n) / math.log(k), 9)))
    return answer
