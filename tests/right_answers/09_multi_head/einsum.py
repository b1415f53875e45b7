"""Everything by einsum, the heads as an axis of the matrices."""

import math

import torch
from torch import einsum, nn


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return einsum("blhd->bhld", x.unflatten(-1, (num_heads, -1)))


def merge_heads(x):
    return einsum("bhld->blhd", x).flatten(-2)


def _attend(q, k, v, keep=None):
    scores = einsum("bhid,bhjd->bhij", q, k) * (1 / math.sqrt(q.shape[-1]))
    if keep is not None:
        scores = scores.masked_fill(keep.logical_not(), float("-inf"))
    weights = scores.softmax(dim=-1)
    if keep is not None:
        weights = weights.nan_to_num(nan=0.0)
    return einsum("bhij,bhjd->bhid", weights, v), weights


def multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    def project(x, W):
        if len(W) % num_heads:
            raise ValueError("num_heads")
        return einsum("ble,hde->bhld", x, W.view(num_heads, -1, W.shape[1]))

    heads, weights = _attend(project(xq, Wq), project(xk, Wk), project(xv, Wv), mask)
    return einsum("bhld,ohd->blo", heads, Wo.view(len(Wo), num_heads, -1)), weights


class SequenceFirstMHA(nn.Module):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.W_q = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_k = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_v = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_o = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        def heads(x):
            if x.shape[-1] % self.num_heads:
                raise ValueError("embed_dim is not a multiple of num_heads")
            return einsum("tbhd->bhtd", x.view(*x.shape[:2], self.num_heads, -1))

        keep = torch.ones(query.shape[0], key.shape[0], dtype=torch.bool)
        if attn_mask is not None:
            keep = attn_mask.ne(0)
        keep = keep.expand(query.shape[1], 1, -1, -1)
        if key_padding_mask is not None:
            keep = keep & key_padding_mask.logical_not()[:, None, None]
        out, _ = _attend(heads(self.W_q(query)), heads(self.W_k(key)), heads(self.W_v(value)), keep)
        return self.W_o(einsum("bhtd->tbhd", out).flatten(2))
