"""Tokens as columns, W x + b as in a textbook, and turned back at the end."""

import torch


def project_qkv(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    columns = x.transpose(-2, -1)  # [..., d, n]

    def act(matrix, shift):
        result = matrix @ columns
        if shift is not None:
            result = result + shift[:, None]
        return result.transpose(-2, -1)

    return act(Wq, bq), act(Wk, bk), act(Wv, bv)


def fixed_mixing(x, M):
    weights = torch.softmax(M.t(), dim=0)  # columns sum to 1
    return (x.transpose(-2, -1) @ weights).transpose(-2, -1)


def count_parameters(kind, n, d):
    if kind not in ("fixed", "qkv", "multi_head"):
        raise ValueError(f"unknown kind: {kind}")
    if kind == "fixed":
        return float(n * n)
    return (3 + (kind == "multi_head")) * d**2
