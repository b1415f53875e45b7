"""Chapter 11: one attention for self and cross, and the two blocks that are built from it."""

import torch
from torch import nn


class CrossAttention(nn.Module):
    """Multi-head attention of `x` over `memory`. Given x twice it is self-attention.

    x (B, Lq, E)   memory (B, Lk, E)   ->   (B, Lq, E)

    mask is True where a query may look and broadcasts to (B, H, Lq, Lk); None means everywhere.
    """

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide a width of {d_model}")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask=None):
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(memory)), self.split(self.v_proj(memory))
        return self.out_proj(self.merge(self.attend(q, k, v, mask)))

    def split(self, x):
        """(B, L, E)   ->   (B, H, L, d)"""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def merge(self, heads):
        """(B, H, L, d)   ->   (B, L, E)"""
        return heads.transpose(1, 2).flatten(2)

    def attend(self, q, k, v, mask):
        """Each head mixes its values; a query that may look nowhere gets zeros."""
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is None:
            return torch.softmax(scores, -1) @ v
        somewhere = mask.any(-1, keepdim=True)
        scores = scores.masked_fill(~mask & somewhere, -torch.inf)  # an empty row stays finite: no NaN gradient
        return torch.softmax(scores, -1).masked_fill(~mask, 0.0) @ v


def feed_forward(d_model, d_ff):
    """Two layers that work on each token alone."""
    return nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))


class EncoderBlock(nn.Module):
    """Look around, then think: self-attention and a feed-forward net, each on a normalised copy, each added to x.

    x (B, L, E)   ->   (B, L, E)
    """

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = CrossAttention(d_model, n_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.ffn = feed_forward(d_model, d_ff)

    def forward(self, x, mask=None):
        h = self.norm1(x)
        x = x + self.attn(h, h, mask)
        return x + self.ffn(self.norm2(x))


class DecoderBlock(nn.Module):
    """Look at oneself, look at the memory, think. The causal mask is the caller's business.

    x (B, L, E)   memory (B, S, E)   ->   (B, L, E)

    self_mask broadcasts to (B, H, L, L), memory_mask to (B, H, L, S). The memory is taken as it comes.
    """

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = CrossAttention(d_model, n_heads)
        self.norm_cross = nn.LayerNorm(d_model)
        self.cross_attn = CrossAttention(d_model, n_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.ffn = feed_forward(d_model, d_ff)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        h = self.norm1(x)
        x = x + self.attn(h, h, self_mask)
        x = x + self.cross_attn(self.norm_cross(x), memory, memory_mask)
        return x + self.ffn(self.norm2(x))
