"""Keys and values by one packed product; batch and heads folded into one axis for baddbmm; safe additive bias."""

import torch
from torch import nn
from torch.nn import functional as F


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"{d_model} % {n_heads} != 0")
        self.heads, self.d = n_heads, d_model // n_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            self.add_module(name, nn.Linear(d_model, d_model))

    def fold(self, x):
        b, n, _ = x.shape
        return x.view(b, n, self.heads, self.d).permute(0, 2, 1, 3).reshape(b * self.heads, n, self.d)

    def forward(self, x, memory, mask=None):
        b, n, e = x.shape
        m = memory.size(1)
        packed = F.linear(
            memory,
            torch.cat((self.k_proj.weight, self.v_proj.weight)),
            torch.cat((self.k_proj.bias, self.v_proj.bias)),
        )
        k, v = (self.fold(part) for part in packed.chunk(2, dim=-1))
        q = self.fold(self.q_proj(x))
        bias, seeing = x.new_zeros(1, 1, 1), None
        if mask is not None:
            mask = mask.broadcast_to(b, self.heads, n, m).reshape(-1, n, m)
            seeing = mask.any(-1, keepdim=True)
            bias = torch.zeros(mask.shape, dtype=x.dtype, device=x.device).masked_fill(seeing & ~mask, -torch.inf)
        weights = torch.baddbmm(bias.expand(b * self.heads, n, m), q, k.mT, alpha=self.d**-0.5).softmax(-1)
        if seeing is not None:
            weights = weights * seeing
        out = torch.bmm(weights, v).view(b, self.heads, n, self.d).permute(0, 2, 1, 3)
        return self.out_proj(out.reshape(b, n, e))


class _Block(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = CrossAttention(d_model, n_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def look(self, x, mask):
        h = self.norm1(x)
        return x + self.attn(h, h, mask)

    def think(self, x):
        return torch.add(x, self.ffn(self.norm2(x)))


class EncoderBlock(_Block):
    def forward(self, x, mask=None):
        return self.think(self.look(x, mask))


class DecoderBlock(_Block):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__(d_model, n_heads, d_ff)
        self.norm_cross = nn.LayerNorm(d_model)
        self.cross_attn = CrossAttention(d_model, n_heads)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.look(x, self_mask)
        return self.think(x + self.cross_attn(self.norm_cross(x), memory, memory_mask))
