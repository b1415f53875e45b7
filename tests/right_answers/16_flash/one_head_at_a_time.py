"""Leading axes are flattened and looped over; small helpers; keys are visited from last to first."""

import math

import torch


def online_softmax(x, block):
    if x.dim() > 1:
        return torch.stack([online_softmax(row, block) for row in x])
    top, total = -math.inf, 0.0
    for chunk in torch.split(x, block):
        high = max(top, chunk.max().item())
        if high == -math.inf:
            continue
        total = total * math.exp(top - high) + torch.exp(chunk - high).sum()
        top = high
    if top == -math.inf:
        return torch.zeros_like(x)
    return (torch.exp(x - top) / total).to(x.dtype)


def merge_partial(o1, lse1, o2, lse2):
    lse = torch.logsumexp(torch.stack([lse1, lse2], -1), -1)
    some = lse > -math.inf
    w1 = torch.where(some, torch.exp(lse1 - lse), torch.zeros_like(lse))
    w2 = torch.where(some, torch.exp(lse2 - lse), torch.zeros_like(lse))
    return torch.einsum("...q,...qe->...qe", w1, o1) + torch.einsum("...q,...qe->...qe", w2, o2), lse


def may_look(r, c, shift, causal, window, device):
    gap = torch.tensor(list(r), device=device)[:, None] + shift - torch.tensor(list(c), device=device)
    ok = torch.ones_like(gap, dtype=torch.bool)
    if causal:
        ok = torch.logical_and(ok, gap >= 0)
    if window is not None:
        ok = torch.logical_and(ok, torch.abs(gap) <= window)
    return ok


def tiles(n, block):
    return [range(start, min(start + block, n)) for start in range(0, n, block)]


def one_head(q, k, v, block, causal, window):
    shift, rows, logs = len(k) - len(q), [], []
    for r in tiles(len(q), block):
        acc, total, top = 0.0, torch.zeros(len(r), 1).to(q), torch.full((len(r), 1), -math.inf).to(q)
        for c in reversed(tiles(len(k), block)):
            ok = may_look(r, c, shift, causal, window, q.device)
            if not ok.any().item():
                continue
            s = q[r.start : r.stop] @ k[c.start : c.stop].T * q.shape[1] ** -0.5
            s = torch.where(ok, s, torch.full_like(s, -math.inf))
            new = torch.maximum(top, s.amax(1, keepdim=True))
            fine = torch.where(new.isinf(), torch.zeros_like(new), new)
            p, f = torch.exp(s - fine), torch.exp(top - fine)
            acc, total, top = acc * f + p @ v[c.start : c.stop], total * f + p.sum(1, keepdim=True), new
        if isinstance(acc, float):
            acc = torch.zeros(len(r), v.shape[1]).to(q)
        rows.append(acc / total.clamp(min=torch.finfo(q.dtype).tiny))
        logs.append((top + total.log()).flatten())
    return torch.cat(rows), torch.cat(logs)


def flash_forward(q, k, v, block=64, causal=False, window=None):
    lead = q.shape[:-2]
    heads = zip(q.flatten(0, -3), k.flatten(0, -3), v.flatten(0, -3), strict=True) if lead else [(q, k, v)]
    outs, lses = zip(*(one_head(*head, block, causal, window) for head in heads), strict=True)
    return torch.stack(outs).reshape(*lead, *outs[0].shape), torch.stack(lses).reshape(*lead, q.shape[-2])


def flash_backward(q, k, v, out, lse, dout, block=64, causal=False):
    if q.dim() > 2:
        each = [flash_backward(*args, block, causal) for args in zip(q, k, v, out, lse, dout, strict=True)]
        return tuple(torch.stack(grads) for grads in zip(*each, strict=True))
    shift, root = len(k) - len(q), math.sqrt(q.shape[1])
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for r in tiles(len(q), block):
        R = slice(r.start, r.stop)
        D = torch.linalg.vecdot(dout[R], out[R]).unsqueeze(1)
        for c in tiles(len(k), block):
            ok = may_look(r, c, shift, causal, None, q.device)
            if not ok.any():
                continue
            C = slice(c.start, c.stop)
            p = torch.where(ok, torch.exp(q[R] @ k[C].T / root - lse[R, None]), torch.zeros((), dtype=q.dtype))
            ds = p * (dout[R] @ v[C].T - D) / root
            dv[C] = dv[C] + p.T @ dout[R]
            dq[R] = dq[R] + ds @ k[C]
            dk[C] = dk[C] + ds.T @ q[R]
    return dq, dk, dv
