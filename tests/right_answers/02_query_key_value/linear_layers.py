"""PyTorch's own linear function, which knows what to do with no bias."""

import torch
import torch.nn.functional as F


def project_qkv(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return F.linear(x, Wq, bq), F.linear(x, Wk, bk), F.linear(x, Wv, bv)


def fixed_mixing(x, M):
    return torch.matmul(F.softmax(M, dim=1), x)


def count_parameters(kind, n, d):
    match kind:
        case "fixed":
            return n**2
        case "qkv":
            return 3 * d**2
        case "multi_head":
            return 4 * d**2
        case _:
            raise ValueError(kind)
