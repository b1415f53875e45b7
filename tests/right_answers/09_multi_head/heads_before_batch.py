"""The head axis is kept in front while working: [H, B, L, d], with three transposes and a masked exponential."""

import torch
from torch import nn


def split_heads(x, num_heads):
    B, L, E = x.shape
    d = E / num_heads
    if d != int(d):
        raise ValueError("E must be divisible by num_heads")
    return x.transpose(0, 1).reshape(L, B * num_heads, int(d)).transpose(0, 1).reshape(B, num_heads, L, int(d))


def merge_heads(x):
    B, H, L, D = x.shape
    return x.reshape(B * H, L, D).transpose(0, 1).reshape(L, B, H * D).transpose(0, 1)


def _softmax_where(scores, mask):
    if mask is None:
        mask = torch.ones((), dtype=torch.bool)
    mask = mask.expand(scores.shape)
    top = scores.masked_fill(~mask, -torch.inf).amax(-1, keepdim=True).detach()
    top = torch.where(top.isfinite(), top, torch.zeros_like(top))
    exps = torch.exp(torch.where(mask, scores - top, torch.zeros_like(scores))) * mask
    total = exps.sum(-1, keepdim=True)
    return exps / torch.where(total > 0, total, torch.ones_like(total))


def _attend(q, k, v, mask):
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    scores = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).transpose(0, 1)
    weights = _softmax_where(scores, mask)
    return (weights.transpose(0, 1) @ v).transpose(0, 1), weights


def multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q = split_heads(xq @ Wq.transpose(0, 1), num_heads)
    k = split_heads(xk @ Wk.transpose(0, 1), num_heads)
    v = split_heads(xv @ Wv.transpose(0, 1), num_heads)
    heads, weights = _attend(q, k, v, mask)
    return merge_heads(heads) @ Wo.transpose(0, 1), weights


class SequenceFirstMHA(nn.Module):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__()
        self.d, rest = divmod(embed_dim, num_heads)
        if rest:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.h = num_heads
        self.W_q = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_k = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_v = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_o = nn.Linear(embed_dim, embed_dim, bias=bias)

    def _heads(self, x):
        T, B, _ = x.shape
        return x.contiguous().view(T, B * self.h, self.d).transpose(0, 1).view(B, self.h, T, self.d)

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        Tq, B, E = query.shape
        mask = torch.ones(B, self.h, Tq, key.shape[0])
        if key_padding_mask is not None:
            mask = mask * (1 - key_padding_mask.float()).view(B, 1, 1, -1)
        if attn_mask is not None:
            mask = mask * (attn_mask != 0).float()
        q, k, v = self._heads(self.W_q(query)), self._heads(self.W_k(key)), self._heads(self.W_v(value))
        out, _ = _attend(q, k, v, mask > 0)
        return self.W_o(out.reshape(B * self.h, Tq, self.d).transpose(0, 1).reshape(Tq, B, E))
