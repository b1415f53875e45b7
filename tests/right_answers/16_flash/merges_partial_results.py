"""Every tile is a small attention of its own; only merging joins them."""

import torch


def online_softmax(x, block):
    parts = x.split(block, dim=-1)
    tops = [part.amax(-1, keepdim=True) for part in parts]
    lse = torch.full_like(tops[0], -torch.inf)
    for part in parts:
        lse = torch.logaddexp(lse, torch.logsumexp(part, -1, keepdim=True))
    return torch.nan_to_num(torch.exp(x - lse), nan=0.0)


def merge_partial(o1, lse1, o2, lse2):
    lse = torch.logaddexp(lse1, lse2)
    share1 = torch.nan_to_num(torch.exp(lse1 - lse), nan=0.0).unsqueeze(-1)
    share2 = torch.nan_to_num(torch.exp(lse2 - lse), nan=0.0).unsqueeze(-1)
    return share1 * o1 + share2 * o2, lse


def allowed(i, j, rows, columns, shift, causal, window, device):
    p = torch.arange(i, i + rows, device=device)[:, None] + shift
    c = torch.arange(j, j + columns, device=device)[None, :]
    ok = torch.ones(rows, columns, dtype=torch.bool, device=device)
    if causal:
        ok &= c <= p
    if window is not None:
        ok &= (p - c).abs() <= window
    return ok


def flash_forward(q, k, v, block=64, causal=False, window=None):
    shift = k.shape[-2] - q.shape[-2]
    outs, lses = [], []
    for i, tq in zip(range(0, q.shape[-2], block), q.split(block, -2), strict=True):
        o = torch.zeros(*tq.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
        lse = torch.full(tq.shape[:-1], -torch.inf, dtype=q.dtype, device=q.device)
        for j, tk, tv in zip(range(0, k.shape[-2], block), k.split(block, -2), v.split(block, -2), strict=True):
            ok = allowed(i, j, tq.shape[-2], tk.shape[-2], shift, causal, window, q.device)
            if not ok.any():
                continue
            s = (tq @ tk.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~ok, -torch.inf)
            part = torch.nan_to_num(torch.softmax(s, -1)) @ tv
            o, lse = merge_partial(o, lse, part, torch.logsumexp(s, -1))
        outs.append(o)
        lses.append(lse)
    return torch.cat(outs, dim=-2), torch.cat(lses, dim=-1)


def flash_backward(q, k, v, out, lse, dout, block=64, causal=False):
    shift, root = k.shape[-2] - q.shape[-2], q.shape[-1] ** 0.5
    delta = torch.einsum("...te,...te->...t", dout, out)
    dqs = []
    dk, dv = torch.zeros_like(k), torch.zeros_like(v)
    for i in range(0, q.shape[-2], block):
        tq, to, tl, td = (q[..., i : i + block, :], dout[..., i : i + block, :], lse[..., i : i + block],
                          delta[..., i : i + block])  # fmt: skip
        dq = torch.zeros_like(tq)
        for j in range(0, k.shape[-2], block):
            tk, tv = k[..., j : j + block, :], v[..., j : j + block, :]
            ok = allowed(i, j, tq.shape[-2], tk.shape[-2], shift, causal, None, q.device)
            if not ok.any():
                continue
            s = tq @ tk.transpose(-1, -2) / root
            p = torch.where(ok, torch.exp(s - tl.unsqueeze(-1)), torch.zeros_like(s))
            ds = p * (to @ tv.transpose(-1, -2) - td.unsqueeze(-1)) / root
            dq = dq + ds @ tk
            dk[..., j : j + block, :] += ds.transpose(-1, -2) @ tq
            dv[..., j : j + block, :] += p.transpose(-1, -2) @ to
        dqs.append(dq)
    return torch.cat(dqs, dim=-2), dk, dv
