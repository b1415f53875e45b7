"""Everything by einsum; the division by √d_k is on the query."""

import math

from torch import einsum, nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads")
        self.h = n_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, memory, mask=None):
        q, k, v = (
            f(y).unflatten(-1, (self.h, -1))
            for f, y in ((self.q_proj, x), (self.k_proj, memory), (self.v_proj, memory))
        )
        scores = einsum("bihd,bjhd->bhij", q / math.sqrt(q.shape[-1]), k)
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), float("-inf"))
        weights = scores.softmax(-1).nan_to_num(0.0)
        return self.out_proj(einsum("bhij,bjhd->bihd", weights, v).flatten(2))


class EncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = CrossAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, mask=None):
        after = self.attn(self.norm1(x), self.norm1(x), mask) + x
        return self.ffn(self.norm2(after)) + after


class DecoderBlock(EncoderBlock):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__(d_model, n_heads, d_ff)
        self.norm_cross = nn.LayerNorm(d_model)
        self.cross_attn = CrossAttention(d_model, n_heads)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        h = self.norm1(x)
        x = x + self.attn(h, h, mask=self_mask)
        x = x + self.cross_attn(self.norm_cross(x), memory, mask=memory_mask)
        return x + self.ffn(self.norm2(x))
