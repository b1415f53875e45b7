"""Everything is padded to whole tiles, the padding is forbidden like any other key, and cut off at the end."""

import torch
import torch.nn.functional as F


def online_softmax(x, block):
    n = x.shape[-1]
    tiles = F.pad(x, (0, -n % block), value=-torch.inf).unflatten(-1, (-1, block))  # [..., tiles, block]
    m = torch.full_like(tiles[..., 0, :1], -torch.inf)
    total = torch.zeros_like(m)
    for t in range(tiles.shape[-2]):
        tile = tiles[..., t, :]
        new = torch.maximum(m, tile.amax(-1, keepdim=True))
        total = torch.nan_to_num(total * torch.exp(m - new)) + torch.nan_to_num(torch.exp(tile - new)).sum(-1, True)
        m = new
    return torch.nan_to_num(torch.exp(x - m) / total)


def merge_partial(o1, lse1, o2, lse2):
    swap = lse2 > lse1
    big, small = torch.where(swap, lse2, lse1), torch.where(swap, lse1, lse2)
    ratio = torch.where(small == -torch.inf, 0.0, torch.exp(small - big))  # at most 1
    first = torch.where(swap.unsqueeze(-1), o2, o1)
    second = torch.where(swap.unsqueeze(-1), o1, o2)
    out = (first + ratio.unsqueeze(-1) * second) / (1 + ratio).unsqueeze(-1)
    return out, big + torch.log1p(ratio)


def _tiles(q, k, block):
    return range(-(-q.shape[-2] // block)), range(-(-k.shape[-2] // block))


def _mask(a, b, block, T, S, causal, window, device):
    place = torch.arange(a * block, (a + 1) * block, device=device)[:, None] + S - T
    key = torch.arange(b * block, (b + 1) * block, device=device)
    ok = (key < S) & (place < S)
    if causal:
        ok = ok & (key <= place)
    if window is not None:
        ok = ok & (key - place <= window) & (place - key <= window)
    return ok


def flash_forward(q, k, v, block=64, causal=False, window=None):
    (T, d), S = q.shape[-2:], k.shape[-2]
    heights, widths = _tiles(q, k, block)
    pq, pk, pv = (F.pad(x, (0, 0, 0, -x.shape[-2] % block)) for x in (q, k, v))
    out = torch.zeros_like(pq[..., :1]).repeat(*[1] * (q.dim() - 1), v.shape[-1])
    lse = torch.full_like(pq[..., 0], -torch.inf)
    for a in heights:
        mine = slice(a * block, (a + 1) * block)
        for b in widths:
            ok = _mask(a, b, block, T, S, causal, window, q.device)
            if not bool(ok.any()):
                continue
            theirs = slice(b * block, (b + 1) * block)
            s = (pq[..., mine, :] @ pk[..., theirs, :].mT) / d**0.5
            s = s.masked_fill(~ok, -torch.inf)
            new = torch.logaddexp(lse[..., mine], torch.logsumexp(s, -1))
            base = torch.where(new == -torch.inf, 0.0, new).unsqueeze(-1)
            old = torch.exp(lse[..., mine].unsqueeze(-1) - base)
            out[..., mine, :] = out[..., mine, :] * old + torch.exp(s - base) @ pv[..., theirs, :]
            lse[..., mine] = new
    return out[..., :T, :], lse[..., :T]


def flash_backward(q, k, v, out, lse, dout, block=64, causal=False):
    (T, d), S = q.shape[-2:], k.shape[-2]
    heights, widths = _tiles(q, k, block)
    pq, pk, pv, po, pg = (F.pad(x, (0, 0, 0, -x.shape[-2] % block)) for x in (q, k, v, out, dout))
    pl = F.pad(lse, (0, -T % block))
    dq, dk, dv = torch.zeros_like(pq), torch.zeros_like(pk), torch.zeros_like(pv)
    for b in widths:
        theirs = slice(b * block, (b + 1) * block)
        for a in heights:
            ok = _mask(a, b, block, T, S, causal, None, q.device)
            if not bool(ok.any()):
                continue
            mine = slice(a * block, (a + 1) * block)
            s = pq[..., mine, :] @ pk[..., theirs, :].mT / d**0.5 - pl[..., mine].unsqueeze(-1)
            p = torch.exp(s.masked_fill(~ok, -torch.inf)).masked_fill(~ok, 0.0)
            delta = (pg[..., mine, :] * po[..., mine, :]).sum(-1, keepdim=True)
            ds = p * (pg[..., mine, :] @ pv[..., theirs, :].mT - delta) / d**0.5
            dq[..., mine, :] += ds @ pk[..., theirs, :]
            dk[..., theirs, :] += ds.mT @ pq[..., mine, :]
            dv[..., theirs, :] += p.mT @ pg[..., mine, :]
    return dq[..., :T, :], dk[..., :S, :], dv[..., :S, :]
