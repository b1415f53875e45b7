"""An autograd function that keeps its mask for the backward pass."""

import torch


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights, keep, factor):
        ctx.save_for_backward(keep)
        ctx.factor = factor
        return weights.masked_fill(~keep, 0.0).mul(factor)

    @staticmethod
    def backward(ctx, gradient):
        (keep,) = ctx.saved_tensors
        return gradient.masked_fill(~keep, 0.0).mul(ctx.factor), None, None


def attention_dropout(weights, p, training, generator=None):
    if not (p >= 0 and p <= 1):
        raise ValueError(f"{p} is no probability")
    if training is False or p == 0.0:
        return weights
    numbers = torch.rand(weights.shape, generator=generator, device=weights.device, dtype=torch.float64)
    factor = 0.0 if p == 1 else 1 / (1 - p)
    return _Dropout.apply(weights, numbers < 1 - p, factor)


def attention_with_dropout(q, k, v, p, training, mask=None, generator=None):
    scores = q.matmul(k.transpose(-1, -2)).div(q.shape[-1] ** 0.5)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -torch.inf)
    top = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min).detach()
    shares = (scores - top).exp()
    total = shares.sum(-1, keepdim=True)
    weights = shares / total.masked_fill(total == 0, 1.0)
    return attention_dropout(weights, p, training, generator).matmul(v), weights
