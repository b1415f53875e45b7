"""A loop over samples and heads, each a small matrix product; the mask is expanded first."""

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.width = d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask=None):
        if self.width * self.n_heads != x.shape[-1]:
            raise ValueError("d_model must be a multiple of n_heads")
        batch, lq, lk = x.shape[0], x.shape[1], memory.shape[1]
        if mask is None:
            mask = torch.ones(lq, lk, dtype=torch.bool, device=x.device)
        mask = mask.expand(batch, self.n_heads, lq, lk)
        q, k, v = self.q_proj(x), self.k_proj(memory), self.v_proj(memory)
        samples = []
        for b in range(batch):
            heads = []
            for h in range(self.n_heads):
                part = slice(h * self.width, (h + 1) * self.width)
                heads.append(self.one(q[b, :, part], k[b, :, part], v[b, :, part], mask[b, h]))
            samples.append(torch.cat(heads, dim=-1))
        return self.out_proj(torch.stack(samples))

    def one(self, q, k, v, mask):
        scores = (q @ k.T) * self.width**-0.5
        blind = ~mask.any(dim=-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(~(mask | blind), -torch.inf), dim=-1)
        return (weights * ~blind) @ v


def _net(d_model, d_ff):
    return nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))


class EncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = CrossAttention(d_model, n_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.ffn = _net(d_model, d_ff)

    def forward(self, x, mask=None):
        y = self.norm1(x)
        y = self.attn(y, y, mask)
        x = y + x
        y = self.norm2(x)
        y = self.ffn(y)
        return y + x


class DecoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.ffn = _net(d_model, d_ff)
        self.cross_attn = CrossAttention(d_model, n_heads)
        self.attn = CrossAttention(d_model, n_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm_cross = nn.LayerNorm(d_model)
        self.norm1 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        steps = (
            lambda y: self.attn(self.norm1(y), self.norm1(y), self_mask),
            lambda y: self.cross_attn(self.norm_cross(y), memory, memory_mask),
            lambda y: self.ffn(self.norm2(y)),
        )
        for step in steps:
            x = x + step(x)
        return x
