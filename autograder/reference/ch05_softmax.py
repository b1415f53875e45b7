"""Chapter 5: from scores to weights. Everything works along one axis; a row is what lies along that axis."""

import torch


def stable_softmax(x, dim=-1):
    """Turn each row of scores into weights that sum to 1.   x (...)  ->  (...)

    A row of -inf gets weights 0: it has no largest score to be shifted by, and nothing to share out.
    """
    exps = (x - _peak(x, dim)).exp()
    total = exps.sum(dim, keepdim=True)
    return exps / total.masked_fill(total == 0, 1.0)


def logsumexp(x, dim=-1):
    """The logarithm of the softmax's denominator.   x (..., n, ...)  ->  (..., ...), the axis is gone

    A row of -inf gives -inf. Its logarithm is never taken: the slope of log at 0 is infinite, and inf * 0 is NaN.
    """
    peak = _peak(x, dim)
    total = (x - peak).exp().sum(dim, keepdim=True)
    empty = total == 0
    lse = peak + total.masked_fill(empty, 1.0).log()
    return lse.masked_fill(empty, -torch.inf).squeeze(dim)


def temperature_softmax(x, temperature, dim=-1):
    """Softmax of x / temperature: below 1 sharper, above 1 flatter."""
    return stable_softmax(x / temperature, dim)


def masked_softmax(x, mask, dim=-1):
    """Softmax over the allowed entries only.   mask: bool, True = allowed, broadcasts to x"""
    return stable_softmax(x.masked_fill(~mask, -torch.inf), dim)


def softmax_vjp(p, grad):
    """Send a gradient back through p = softmax(x), last axis: p * (grad - <p, grad>), and no n x n matrix."""
    return p * (grad - (p * grad).sum(-1, keepdim=True))


def _peak(x, dim):
    """The largest score of each row, a constant to be shifted by; 0 for a row of -inf, since -inf - (-inf) is NaN."""
    peak = x.detach().amax(dim, keepdim=True)
    return peak.masked_fill(peak == -torch.inf, 0.0)
