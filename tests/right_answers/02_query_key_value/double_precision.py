"""Calculate in float64 and cast back; the bias rides along as one more feature that is always 1."""

import torch


def project_qkv(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    ones = torch.ones_like(x[..., :1], dtype=torch.float64)
    extended = torch.cat([x.double(), ones], -1)
    results = []
    for weight, bias in ((Wq, bq), (Wk, bk), (Wv, bv)):
        last = torch.zeros_like(weight[:, 0]) if bias is None else bias
        whole = torch.cat([weight.double(), last.double()[:, None]], 1)
        results.append((extended @ whole.T).to(x.dtype))
    return tuple(results)


def fixed_mixing(x, M):
    scores = M.double()
    weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    return (weights @ x.double()).to(x.dtype)


def count_parameters(kind, n, d):
    if kind == "fixed":
        learned = [torch.empty(n, n, device="meta")]
    elif kind == "qkv":
        learned = torch.nn.ModuleList(torch.nn.Linear(d, d, bias=False, device="meta") for _ in range(3)).parameters()
    elif kind == "multi_head":
        learned = torch.nn.MultiheadAttention(d, 1, bias=False, device="meta").parameters()
    else:
        raise ValueError(kind)
    return sum(tensor.numel() for tensor in learned)
