"""Chapter 2: where queries, keys and values come from, and the mixing that attention is not."""

import torch


def project_qkv(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    """Ask, offer and give: three linear maps of the same tokens, each with its own bias or none.

    x (..., n, d)   Wq, Wk (d_k, d)   Wv (d_v, d)   ->   (..., n, d_k), (..., n, d_k), (..., n, d_v)
    """

    def project(weight, bias):
        y = x @ weight.mT  # stored as (out, in), like nn.Linear
        return y if bias is None else y + bias

    return project(Wq, bq), project(Wk, bk), project(Wv, bv)


def fixed_mixing(x, M):
    """Mix the tokens by learned weights that never look at them.   x (..., n, d)   M (n, n)   ->   (..., n, d)"""
    return torch.softmax(M, -1) @ x


def count_parameters(kind, n, d):
    """How many numbers are learned, biases aside, for n tokens of width d."""
    if kind == "fixed":  # M
        return n * n
    if kind == "qkv":  # Wq, Wk, Wv
        return 3 * d * d
    if kind == "multi_head":  # Wq, Wk, Wv and the output projection Wo
        return 4 * d * d
    raise ValueError(f"unknown kind {kind!r}")
