"""One large product for all three, split afterwards by the widths; missing biases are zeros."""

import math

import torch


def project_qkv(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    weights = (Wq, Wk, Wv)
    biases = [w.new_zeros(len(w)) if b is None else b for w, b in zip(weights, (bq, bk, bv), strict=True)]
    packed = x @ torch.cat(weights).T + torch.cat(biases)
    return torch.split(packed, [len(w) for w in weights], dim=-1)


def fixed_mixing(x, M):
    highest = M.max(dim=-1, keepdim=True).values
    shares = torch.exp(M - highest)
    return (shares / shares.sum(dim=-1, keepdim=True)) @ x


SHAPES = {"fixed": "nn", "qkv": "dd dd dd", "multi_head": "dd dd dd dd"}


def count_parameters(kind, n, d):
    try:
        shapes = SHAPES[kind].split()
    except KeyError:
        raise ValueError(kind) from None
    return sum(math.prod({"n": n, "d": d}[axis] for axis in shape) for shape in shapes)
