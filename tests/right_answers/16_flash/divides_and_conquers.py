"""Keys are halved until they fit into a block, and the halves are merged on the way up."""

import torch

EMPTY = float("-inf")


def _lse(x, block):
    if x.shape[-1] <= block:
        top = x.amax(-1)
        top = top.masked_fill(top == EMPTY, 0.0)
        return top + (x - top[..., None]).exp().sum(-1).log()
    middle = x.shape[-1] // 2
    return torch.logaddexp(_lse(x[..., :middle], block), _lse(x[..., middle:], block))


def online_softmax(x, block):
    lse = _lse(x, block)
    return (x - lse.masked_fill(lse == EMPTY, 0.0)[..., None]).exp()


def merge_partial(o1, lse1, o2, lse2):
    share = torch.sigmoid(lse1 - lse2)  # NaN only where both are empty
    share = torch.where(share.isnan(), torch.zeros_like(share), share)[..., None]
    return share * o1 + (1 - share) * o2, torch.logaddexp(lse1, lse2)


def _seen(lo, hi, j, j2, causal, window):
    near, far = lo - (j2 - 1), hi - 1 - j  # the distances in this tile
    if causal and far < 0:
        return False
    return window is None or (near <= window and far >= -window)


def _over(q, k, v, lo, j, j2, block, causal, window):
    """Attention of one query tile, at places lo, lo + 1, …, over the keys j … j2."""
    hi = lo + q.shape[-2]
    if not _seen(lo, hi, j, j2, causal, window):
        return q.new_zeros(*q.shape[:-1], v.shape[-1]), q.new_full(q.shape[:-1], EMPTY)
    if j2 - j <= block:
        s = torch.einsum("...td,...sd->...ts", q, k[..., j:j2, :]) / q.shape[-1] ** 0.5
        gap = torch.arange(lo, hi, device=q.device)[:, None] - torch.arange(j, j2, device=q.device)
        if causal:
            s = s.masked_fill(gap < 0, EMPTY)
        if window is not None:
            s = s.masked_fill(gap.abs() > window, EMPTY)
        lse = _lse(s, block)
        p = (s - lse.masked_fill(lse == EMPTY, 0.0)[..., None]).exp()
        return torch.einsum("...ts,...se->...te", p, v[..., j:j2, :]), lse
    middle = j + (j2 - j + block - 1) // block // 2 * block
    left = _over(q, k, v, lo, j, middle, block, causal, window)
    right = _over(q, k, v, lo, middle, j2, block, causal, window)
    return merge_partial(*left, *right)


def flash_forward(q, k, v, block=64, causal=False, window=None):
    shift, keys = k.shape[-2] - q.shape[-2], k.shape[-2]
    starts = range(0, q.shape[-2], block)
    found = [_over(q[..., i : i + block, :], k, v, i + shift, 0, keys, block, causal, window) for i in starts]
    return torch.cat([o for o, _ in found], -2), torch.cat([lse for _, lse in found], -1)


def flash_backward(q, k, v, out, lse, dout, block=64, causal=False):
    T, S = q.shape[-2], k.shape[-2]
    q = q / q.shape[-1] ** 0.5
    D, lse = (dout * out).sum(-1), lse.masked_fill(lse == EMPTY, 0.0)
    dq, dk, dv = q.new_zeros(q.shape), k.new_zeros(k.shape), v.new_zeros(v.shape)
    for i in range(0, T, block):
        r = range(i, min(i + block, T))
        for j in range(0, S, block):
            c = range(j, min(j + block, S))
            if not _seen(i + S - T, r[-1] + 1 + S - T, j, c[-1] + 1, causal, None):
                continue
            a, b = (..., slice(r.start, r.stop), slice(None)), (..., slice(c.start, c.stop), slice(None))
            s = torch.einsum("...td,...sd->...ts", q[a], k[b])
            p = (s - lse[..., r.start : r.stop, None]).exp()
            if causal and c[-1] > r[0] + S - T:
                p = p.tril(r.start + S - T - c.start)
            g = p * (torch.einsum("...te,...se->...ts", dout[a], v[b]) - D[..., r.start : r.stop, None])
            dv[b] += torch.einsum("...ts,...te->...se", p, dout[a])
            dq[a] += torch.einsum("...ts,...sd->...td", g, k[b])
            dk[b] += torch.einsum("...ts,...td->...sd", g, q[a])
    return dq / k.shape[-1] ** 0.5, dk, dv
