"""Low precision comes in and goes out; inside everything is at least float32, as in the real kernels."""

import torch

LOW = torch.finfo(torch.float32).min


def _wide(*tensors):
    return [t.float() if t.dtype in (torch.bfloat16, torch.float16) else t for t in tensors]


def online_softmax(x, block):
    (y,) = _wide(x)
    rows = y.reshape(-1, y.shape[-1])
    m, s = rows.new_full((len(rows), 1), LOW), rows.new_zeros(len(rows), 1)
    for i in range(0, rows.shape[1], block):
        b = rows[:, i : i + block]
        m2 = torch.maximum(m, b.max(1, keepdim=True)[0])
        s = s * torch.exp(m - m2) + torch.exp(b - m2).sum(1, keepdim=True)
        m = m2
    s[s == 0] = 1.0
    return (torch.exp(rows - m) / s).reshape(x.shape).to(x.dtype)


def merge_partial(o1, lse1, o2, lse2):
    a, la, b, lb = _wide(o1, lse1, o2, lse2)
    stacked = torch.stack([la, lb])
    weights = torch.softmax(stacked, 0).nan_to_num(0.0)
    o = weights[0].unsqueeze(-1) * a + weights[1].unsqueeze(-1) * b
    return o.to(o1.dtype), torch.logsumexp(stacked, 0).to(lse1.dtype)


def _needed(i, i2, j, j2, shift, causal, window):
    return any(
        (not causal or j <= p) and (window is None or (j - window <= p <= j2 - 1 + window)) for p in range(i + shift, i2 + shift)
    )  # fmt: skip


def flash_forward(q, k, v, block=64, causal=False, window=None):
    Q, K, V = _wide(q, k, v)
    T, S = q.shape[-2], k.shape[-2]
    o, L = [], []
    for i in range(0, T, block):
        i2 = min(i + block, T)
        m = Q.new_full((*Q.shape[:-2], i2 - i), LOW)
        s, acc = torch.zeros_like(m), Q.new_zeros(*Q.shape[:-2], i2 - i, V.shape[-1])
        for j in range(0, S, block):
            j2 = min(j + block, S)
            if not _needed(i, i2, j, j2, S - T, causal, window):
                continue
            x = (Q[..., i:i2, :] @ K[..., j:j2, :].mT).div_(Q.shape[-1] ** 0.5)
            gap = (torch.arange(i, i2)[:, None] + S - T - torch.arange(j, j2)).to(q.device)
            if causal:
                x.masked_fill_(gap < 0, -torch.inf)
            if window is not None:
                x.masked_fill_((gap < -window) | (gap > window), -torch.inf)
            m2 = torch.maximum(m, x.amax(-1))
            x.sub_(m2.unsqueeze(-1)).exp_()
            f = torch.exp(m - m2)
            s.mul_(f).add_(x.sum(-1))
            acc.mul_(f.unsqueeze(-1)).add_(x @ V[..., j:j2, :])
            m = m2
        seen = s > 0
        o.append((acc / torch.where(seen, s, 1.0).unsqueeze(-1)).to(q.dtype))
        L.append(torch.where(seen, m + s.log(), -torch.inf).to(q.dtype))
    return torch.cat(o, -2), torch.cat(L, -1)


def flash_backward(q, k, v, out, lse, dout, block=64, causal=False):
    Q, K, V, Y, L, G = _wide(q, k, v, out, lse, dout)
    T, S, c = q.shape[-2], k.shape[-2], q.shape[-1] ** -0.5
    D = (G * Y).sum(-1, keepdim=True)
    dQ, dK, dV = torch.zeros_like(Q), torch.zeros_like(K), torch.zeros_like(V)
    for i in range(0, T, block):
        i2 = min(i + block, T)
        for j in range(0, S if not causal else min(S, i2 + S - T), block):
            j2 = min(j + block, S)
            p = torch.exp(Q[..., i:i2, :] @ K[..., j:j2, :].mT * c - L[..., i:i2, None])
            if causal:
                gap = (torch.arange(i, i2)[:, None] + S - T - torch.arange(j, j2)).to(q.device)
                p = p.masked_fill(gap < 0, 0.0)
            ds = p * (G[..., i:i2, :] @ V[..., j:j2, :].mT - D[..., i:i2, :]) * c
            dV[..., j:j2, :] += p.mT @ G[..., i:i2, :]
            dQ[..., i:i2, :] += ds @ K[..., j:j2, :]
            dK[..., j:j2, :] += ds.mT @ Q[..., i:i2, :]
    return dQ.to(q.dtype), dK.to(k.dtype), dV.to(v.dtype)
