"""The order of the first paper: keys in the outer loop, and an output that is normalised at every step."""

import math

import torch


def online_softmax(x, block):
    m = torch.full(x.shape[:-1], -math.inf, dtype=x.dtype, device=x.device)
    d = torch.zeros_like(m)
    for column in range(x.shape[-1]):  # one number at a time is a block too
        value = x[..., column]
        new = torch.max(m, value)
        keep = torch.where(m == -math.inf, torch.zeros_like(m), torch.exp(m - new))
        add = torch.where(value == -math.inf, torch.zeros_like(m), torch.exp(value - new))
        m, d = new, d * keep + add
    y = torch.exp(x - m[..., None]) / d[..., None]
    return torch.where(d[..., None] == 0, torch.zeros_like(y), y)


def merge_partial(o1, lse1, o2, lse2):
    top = torch.maximum(lse1, lse2)
    top = torch.where(torch.isinf(top), torch.zeros_like(top), top)
    a, b = torch.exp(lse1 - top), torch.exp(lse2 - top)
    total = a + b
    divisor = torch.where(total == 0, torch.ones_like(total), total)
    return (a / divisor)[..., None] * o1 + (b / divisor)[..., None] * o2, top + torch.log(total)


def flash_forward(q, k, v, block=64, causal=False, window=None):
    T, S = q.shape[-2], k.shape[-2]
    O = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)  # noqa: E741
    m = torch.full((*q.shape[:-1], 1), -math.inf, dtype=q.dtype, device=q.device)
    l = torch.zeros_like(m)  # noqa: E741
    for c0 in range(0, S, block):
        c1 = min(c0 + block, S)
        for r0 in range(0, T, block):
            r1 = min(r0 + block, T)
            lowest, highest = r0 + S - T, r1 - 1 + S - T
            if causal and highest < c0:
                continue
            if window is not None and (c1 - 1 < lowest - window or c0 > highest + window):
                continue
            at = torch.arange(lowest, highest + 1, device=q.device).unsqueeze(1)
            to = torch.arange(c0, c1, device=q.device).unsqueeze(0)
            s = torch.matmul(q[..., r0:r1, :], k[..., c0:c1, :].transpose(-2, -1)) / math.sqrt(q.size(-1))
            if causal:
                s = torch.where(to <= at, s, -math.inf)
            if window is not None:
                s = torch.where((to - at).abs() <= window, s, -math.inf)
            mt = s.max(dim=-1, keepdim=True).values
            mt0 = torch.where(mt == -math.inf, torch.zeros_like(mt), mt)
            p = torch.exp(s - mt0)
            lt = p.sum(-1, keepdim=True)
            old_m, old_l = m[..., r0:r1, :], l[..., r0:r1, :]
            new_m = torch.maximum(old_m, mt)
            base = torch.where(new_m == -math.inf, torch.zeros_like(new_m), new_m)
            a, b = torch.exp(old_m - base), torch.exp(mt - base)
            new_l = a * old_l + b * lt
            div = torch.where(new_l == 0, torch.ones_like(new_l), new_l)
            O[..., r0:r1, :] = (a * old_l * O[..., r0:r1, :] + b * (p @ v[..., c0:c1, :])) / div
            m[..., r0:r1, :], l[..., r0:r1, :] = new_m, new_l
    return O, (m + torch.log(l)).squeeze(-1)


def flash_backward(q, k, v, out, lse, dout, block=64, causal=False):
    T, S, root = q.shape[-2], k.shape[-2], math.sqrt(q.shape[-1])
    D = torch.sum(dout * out, dim=-1, keepdim=True)
    dq = torch.zeros_like(q)
    dks, dvs = [], []
    for c0 in range(0, S, block):
        kt, vt = k[..., c0 : c0 + block, :], v[..., c0 : c0 + block, :]
        dk, dv = torch.zeros_like(kt), torch.zeros_like(vt)
        first = max((c0 - (S - T)) // block * block, 0) if causal else 0  # the first query tile that sees this tile
        for r0 in range(first, T, block):
            r1 = min(r0 + block, T)
            s = q[..., r0:r1, :] @ kt.mT / root
            if causal:
                at = torch.arange(r0, r1, device=q.device)[:, None] + (S - T)
                s = s.masked_fill(torch.arange(c0, c0 + kt.shape[-2], device=q.device) > at, -math.inf)
            p = torch.exp(s - lse[..., r0:r1, None]).nan_to_num(0.0)
            do = dout[..., r0:r1, :]
            ds = p * (do @ vt.mT - D[..., r0:r1, :])
            dv = dv + p.mT @ do
            dk = dk + ds.mT @ q[..., r0:r1, :] / root
            dq[..., r0:r1, :] += ds @ kt / root
        dks.append(dk)
        dvs.append(dv)
    return dq, torch.cat(dks, -2), torch.cat(dvs, -2)
