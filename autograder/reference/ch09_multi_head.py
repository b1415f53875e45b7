"""Chapter 9: several small attentions side by side, each in its own slice of the features."""

import torch
from torch import nn


def split_heads(x, num_heads):
    """Give each head its own slice of the features: head h takes columns h·d … h·d + d − 1.

    x (B, L, E)   ->   (B, H, L, E/H)
    """
    batch, length, width = x.shape
    if width % num_heads:
        raise ValueError(f"{num_heads} heads do not divide a width of {width}")
    return x.reshape(batch, length, num_heads, width // num_heads).transpose(1, 2)


def merge_heads(x):
    """Put the heads of each token back side by side.   x (B, H, L, D)   ->   (B, L, H·D)"""
    batch, heads, length, width = x.shape
    return x.transpose(1, 2).reshape(batch, length, heads * width)


def attend(q, k, v, mask=None):
    """Scaled dot-product attention in every head at once; a query that may look nowhere gets zeros.

    q (B, H, Lq, d)   k (B, H, Lk, d)   v (B, H, Lk, e)   ->   (B, H, Lq, e), (B, H, Lq, Lk)

    mask is True where a query may look and broadcasts to (B, H, Lq, Lk); None means everywhere.
    """
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is None:
        weights = torch.softmax(scores, -1)
    else:
        somewhere = mask.any(-1, keepdim=True)
        scores = scores.masked_fill(~mask & somewhere, -torch.inf)  # an empty row stays finite: no NaN gradient
        weights = torch.softmax(scores, -1).masked_fill(~mask, 0.0)
    return weights @ v, weights


def multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    """Project, split into heads, attend in each, merge, project back.

    xq (B, Lq, ·)   xk, xv (B, Lk, ·)   Wq, Wk (H·d_k, ·)   Wv (H·d_v, ·)   Wo (E_out, H·d_v)

    ->   (B, Lq, E_out), (B, H, Lq, Lk)
    """
    q = split_heads(xq @ Wq.T, num_heads)
    k = split_heads(xk @ Wk.T, num_heads)
    v = split_heads(xv @ Wv.T, num_heads)
    heads, weights = attend(q, k, v, mask)
    return merge_heads(heads) @ Wo.T, weights


class SequenceFirstMHA(nn.Module):
    """Multi-head attention on (T, B, E): time first, then the batch.

    key_padding_mask (B, Tk) is True where a key is dropped; attn_mask (Tq, Tk), of any dtype, is 0 where it is dropped.
    """

    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"{num_heads} heads do not divide a width of {embed_dim}")
        self.num_heads = num_heads
        self.W_q = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_k = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_v = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_o = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        q = split_heads(self.W_q(query).transpose(0, 1), self.num_heads)
        k = split_heads(self.W_k(key).transpose(0, 1), self.num_heads)
        v = split_heads(self.W_v(value).transpose(0, 1), self.num_heads)
        heads, _ = attend(q, k, v, self.allowed(key_padding_mask, attn_mask))
        return self.W_o(merge_heads(heads).transpose(0, 1))

    def allowed(self, key_padding_mask, attn_mask):
        """Both masks as one of ours, True = may look, which broadcasts to (B, H, Tq, Tk)."""
        mask = None if attn_mask is None else attn_mask != 0
        if key_padding_mask is not None:
            real = ~key_padding_mask[:, None, None, :]
            mask = real if mask is None else mask & real
        return mask
