"""The attention is computed in float64 and rounded at the end; the decoder holds an encoder's steps."""

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} does not divide {d_model}")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask=None):
        q = self._heads(self.q_proj(x))
        k = self._heads(self.k_proj(memory))
        v = self._heads(self.v_proj(memory))
        scores = torch.einsum("hbqd,hbkd->bhqk", q, k).double() / torch.tensor(q.shape[-1]).double().sqrt()
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(-1).to(x.dtype)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0)
        out = torch.einsum("bhqk,hbkd->bqhd", weights, v)
        return self.out_proj(out.reshape(x.shape))

    def _heads(self, x):
        return torch.stack(x.split(x.shape[-1] // self.n_heads, dim=-1))


class EncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attn = CrossAttention(n_heads=n_heads, d_model=d_model)
        self.ffn = nn.Sequential(*[nn.Linear(d_model, d_ff), nn.GELU(approximate="none"), nn.Linear(d_ff, d_model)])
        self.norm1 = nn.LayerNorm([d_model], eps=1e-5)
        self.norm2 = nn.LayerNorm([d_model], eps=1e-5)

    def forward(self, x, mask=None):
        h = self.norm1(x)
        x = x.add(self.attn(x=h, memory=h, mask=mask))
        return x.add(self.ffn(self.norm2(x)))


class DecoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attn, self.cross_attn = CrossAttention(d_model, n_heads), CrossAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.norm1, self.norm_cross, self.norm2 = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        out = x.clone()
        h = self.norm1(out)
        out = out + self.attn(h, h, self_mask)
        out = out + self.cross_attn(self.norm_cross(out), memory, memory_mask)
        out = out + self.ffn(self.norm2(out))
        return out
