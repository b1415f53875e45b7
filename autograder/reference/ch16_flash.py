"""Chapter 16: exact attention, one tile at a time."""

import torch


def online_softmax(x, block):
    """Softmax along the last axis, reading `block` numbers at a time; a row of -inf gives zeros."""
    top = torch.full_like(x[..., 0], -torch.inf)  # the largest number so far
    total = torch.zeros_like(top)  # the sum of exp(x - top) so far
    for part in x.split(block, -1):
        higher = torch.maximum(top, part.amax(-1))
        total = total * (top - _finite(higher)).exp() + (part - _finite(higher)[..., None]).exp().sum(-1)
        top = higher
    return (x - _finite(top)[..., None]).exp() / _positive(total)[..., None]


def merge_partial(o1, lse1, o2, lse2):
    """Attention over two sets of keys from the attention over each.

    o1, o2 (..., L, e)   lse1, lse2 (..., L): the log of the sum of exp(scores), -inf where there was no key
    """
    lse = torch.logaddexp(lse1, lse2)
    w1, w2 = (lse1 - _finite(lse)).exp(), (lse2 - _finite(lse)).exp()
    return w1[..., None] * o1 + w2[..., None] * o2, lse


def flash_forward(q, k, v, block=64, causal=False, window=None):
    """Attention and its log-sum-exp, never holding more than one tile of scores.

    q (..., T, d)   k (..., S, d)   v (..., S, e)   ->   out (..., T, e), lse (..., T)

    Query i stands at place i + S - T among the keys. A query that may look nowhere gets 0, and lse -inf.
    """
    outs, lses = [], []
    for i in range(0, q.shape[-2], block):
        rows = q[..., i : i + block, :] / q.shape[-1] ** 0.5
        top = torch.full_like(rows[..., 0], -torch.inf)
        total, mixed = torch.zeros_like(top), rows.new_zeros(*rows.shape[:-1], v.shape[-1])
        for j in range(0, k.shape[-2], block):
            if not _some_may_look(i, j, block, q.shape[-2], k.shape[-2], causal, window):
                continue
            hidden = ~_may_look(i, j, block, q, k, causal, window)
            scores = (rows @ k[..., j : j + block, :].mT).masked_fill(hidden, -torch.inf)  # (..., block, block)
            higher = torch.maximum(top, scores.amax(-1))
            votes, shrink = (scores - _finite(higher)[..., None]).exp(), (top - _finite(higher)).exp()
            total = total * shrink + votes.sum(-1)
            mixed = mixed * shrink[..., None] + votes @ v[..., j : j + block, :]
            top = higher
        outs.append(mixed / _positive(total)[..., None])
        lses.append(top + total.log())
    return torch.cat(outs, -2), torch.cat(lses, -1)


def flash_backward(q, k, v, out, lse, dout, block=64, causal=False):
    """The gradients of the output weighted by `dout`. Each tile of weights is computed again from its scores and lse."""
    scale = q.shape[-1] ** -0.5
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    shared = (dout * out).sum(-1, keepdim=True)  # what softmax takes from every key of a row
    for i in range(0, q.shape[-2], block):
        rows = slice(i, i + block)
        for j in range(0, k.shape[-2], block):
            if not _some_may_look(i, j, block, q.shape[-2], k.shape[-2], causal, None):
                continue
            columns = slice(j, j + block)
            hidden = ~_may_look(i, j, block, q, k, causal, None)
            scores = (q[..., rows, :] @ k[..., columns, :].mT * scale).masked_fill(hidden, -torch.inf)
            weights = (scores - _finite(lse[..., rows])[..., None]).exp()
            dweights = dout[..., rows, :] @ v[..., columns, :].mT
            dscores = weights * (dweights - shared[..., rows, :])
            dv[..., columns, :] += weights.mT @ dout[..., rows, :]
            dq[..., rows, :] += dscores @ k[..., columns, :] * scale
            dk[..., columns, :] += dscores.mT @ q[..., rows, :] * scale
    return dq, dk, dv


def _finite(top):
    """-inf becomes 0: exp(-inf - 0) is 0, exp(-inf - -inf) would be NaN."""
    return top.masked_fill(top == -torch.inf, 0.0)


def _positive(total):
    """The sum of no votes is 0; dividing 0 by 1 keeps it 0."""
    return total.masked_fill(total == 0, 1.0)


def _some_may_look(i, j, block, queries, keys, causal, window):
    """Whether the tile at (i, j) holds any allowed pair: the distances in it are all whole numbers of an interval."""
    first, last = i + keys - queries, min(i + block, queries) - 1 + keys - queries
    nearest, farthest = first - (min(j + block, keys) - 1), last - j
    low = 0 if causal else -torch.inf if window is None else -window
    return farthest >= low and (window is None or nearest <= window)


def _may_look(i, j, block, q, k, causal, window):
    queries, keys = q.shape[-2], k.shape[-2]
    place = torch.arange(i, min(i + block, queries), device=q.device)[:, None] + keys - queries
    ahead = torch.arange(j, min(j + block, keys), device=q.device) - place  # (rows, columns)
    allowed = ahead <= 0 if causal else torch.ones_like(ahead, dtype=torch.bool)
    return allowed if window is None else allowed & (ahead.abs() <= window)
