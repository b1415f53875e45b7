"""A hand-written backward pass: the softmax is a torch.autograd.Function that uses softmax_vjp."""

import torch


def softmax_vjp(p, grad):
    return p * (grad - (p * grad).sum(-1, keepdim=True))


def _forward(x):
    top = x.amax(-1, keepdim=True)
    top[top == -torch.inf] = 0.0
    e = (x - top).exp_()
    total = e.sum(-1, keepdim=True)
    total[total == 0] = 1.0
    return e.div_(total), total.log().add_(top).masked_fill_((e == 0).all(-1, keepdim=True), -torch.inf)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        p, _ = _forward(x)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, grad):
        (p,) = ctx.saved_tensors
        return softmax_vjp(p, grad)


class _LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        p, lse = _forward(x)
        ctx.save_for_backward(p)
        return lse.squeeze(-1)

    @staticmethod
    def backward(ctx, grad):
        (p,) = ctx.saved_tensors
        return p * grad.unsqueeze(-1)


def stable_softmax(x, dim=-1):
    return _Softmax.apply(x.transpose(dim, -1)).transpose(dim, -1)


def logsumexp(x, dim=-1):
    return _LogSumExp.apply(x.movedim(dim, -1))


def temperature_softmax(x, temperature, dim=-1):
    return stable_softmax(x / temperature, dim)


def masked_softmax(x, mask, dim=-1):
    return stable_softmax(x.masked_fill(~mask, -torch.inf), dim)
