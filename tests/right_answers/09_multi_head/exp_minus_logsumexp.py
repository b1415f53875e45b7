"""The softmax is written exp(x - logsumexp(x)); blind rows are given something finite to look at, then zeroed."""

import torch
from torch import nn


def split_heads(x, num_heads):
    if x.shape[-1] // num_heads * num_heads != x.shape[-1]:
        raise ValueError(num_heads)
    return torch.movedim(x.unflatten(2, (num_heads, x.shape[-1] // num_heads)), 2, 1)


def merge_heads(x):
    return torch.movedim(x, 1, 2).flatten(start_dim=2)


def _attend(q, k, v, drop=None):
    scores = torch.matmul(q / q.shape[-1] ** 0.5, k.transpose(-1, -2))
    if drop is None:
        weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    else:
        drop = drop.broadcast_to(scores.shape)
        blind = drop.all(-1, keepdim=True)
        scores = torch.where(drop & ~blind, -torch.inf, scores)
        weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True)) * ~blind
    return torch.matmul(weights, v), weights


def multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q = split_heads(xq.matmul(Wq.t()), num_heads)
    k = split_heads(xk.matmul(Wk.t()), num_heads)
    v = split_heads(xv.matmul(Wv.t()), num_heads)
    heads, weights = _attend(q, k, v, None if mask is None else ~mask)
    return merge_heads(heads).matmul(Wo.t()), weights


class SequenceFirstMHA(nn.Module):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__()
        if embed_dim // num_heads * num_heads != embed_dim:
            raise ValueError(num_heads)
        self.num_heads = num_heads
        self.W_q = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_k = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_v = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_o = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        drop = torch.zeros(1, 1, 1, 1, dtype=torch.bool)
        if key_padding_mask is not None:
            drop = drop | key_padding_mask[:, None, None, :]
        if attn_mask is not None:
            drop = drop | (attn_mask == 0)
        q, k, v = self.W_q(query), self.W_k(key), self.W_v(value)
        q, k, v = (split_heads(x.movedim(0, 1), self.num_heads) for x in (q, k, v))
        return self.W_o(merge_heads(_attend(q, k, v, drop)[0]).movedim(1, 0))
