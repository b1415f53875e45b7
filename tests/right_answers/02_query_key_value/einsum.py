"""Indices instead of transpositions."""

import torch


def project(x, weight, bias):
    y = torch.einsum("...nd,od->...no", x, weight)
    if bias is not None:
        y = y + bias
    return y


def project_qkv(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return tuple(project(x, w, b) for w, b in zip((Wq, Wk, Wv), (bq, bk, bv), strict=True))


def fixed_mixing(x, M):
    return torch.einsum("ij,...jd->...id", M.softmax(-1), x)


def count_parameters(kind, n, d):
    counts = {"fixed": n * n, "qkv": 3 * d * d, "multi_head": 4 * d * d}
    if kind not in counts:
        raise ValueError(f"kind must be one of {sorted(counts)}")
    return counts[kind]
