"""Scores as [B, H, Lk, Lq], softmax over axis −2, in-place steps on what is its own; dropout of 0 that does nothing."""

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads > 0:
            raise ValueError("heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=True)
        self.k_proj = nn.Linear(d_model, d_model, bias=True)
        self.v_proj = nn.Linear(d_model, d_model, bias=True)
        self.out_proj = nn.Linear(d_model, d_model, bias=True)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x, memory, mask=None):
        def heads(y):
            return y.view(y.shape[0], y.shape[1], self.n_heads, -1).movedim(2, 1)

        q, k, v = heads(self.q_proj(x)), heads(self.k_proj(memory)), heads(self.v_proj(memory))
        scores = k @ q.mT
        scores *= (x.shape[-1] // self.n_heads) ** -0.5
        if mask is not None:
            mask = mask.mT if mask.dim() > 1 else mask[:, None]
            scores.masked_fill_(~mask, -torch.inf)
        weights = torch.softmax(scores, dim=-2)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
        out = self.dropout(weights).mT @ v
        return self.out_proj(out.movedim(1, 2).flatten(2))


class EncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attn = CrossAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(p=0)

    def forward(self, x, mask=None):
        h = self.norm1(x)
        x = self.dropout(self.attn(h, h, mask)) + x
        x = self.dropout(self.ffn(self.norm2(x))) + x
        return x


class DecoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        encoder = EncoderBlock(d_model, n_heads, d_ff)
        self.attn, self.norm1, self.norm2, self.ffn = encoder.attn, encoder.norm1, encoder.norm2, encoder.ffn
        self.norm_cross = nn.LayerNorm(d_model)
        self.cross_attn = CrossAttention(d_model, n_heads)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        h = self.norm1(x)
        y = self.attn(h, h, self_mask)
        y += x
        z = self.cross_attn(self.norm_cross(y), memory, memory_mask)
        z = z + y
        return z + self.ffn(self.norm2(z))
