"""One matrix for both states, the pairs joined side by side; exp(x - logsumexp(x)) as softmax; digits of n - 1."""

import torch


def additive_scores(s, h, Wa, Ua, va):
    q_len, k_len = s.shape[-2], h.shape[-2]
    pairs = torch.cat(
        [
            s.unsqueeze(-2).expand(*s.shape[:-1], k_len, s.shape[-1]),
            h.unsqueeze(-3).expand(*h.shape[:-2], q_len, *h.shape[-2:]),
        ],
        dim=-1,
    )
    hidden = torch.nn.functional.linear(pairs, torch.cat([Wa, Ua], dim=1)).tanh()
    return torch.nn.functional.linear(hidden, va[None]).squeeze(-1)


def soft_lookup(q, keys, values, beta=1.0):
    scores = q.matmul(keys.mT).mul(beta)
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True)).matmul(values)


def path_and_cost(kind, n, d, k=None):
    def digits(number):
        return 0 if number == 0 else 1 + digits(number // k)

    if kind == "conv":
        return {"path": digits(n - 1), "sequential": 1, "multiplies": k * n * d * d}
    if kind == "recurrent":
        return {"path": n, "sequential": n, "multiplies": n * d * d}
    if kind == "attention":
        return {"path": 1, "sequential": 1, "multiplies": n * n * d}
    raise ValueError("attention, recurrent or conv")
