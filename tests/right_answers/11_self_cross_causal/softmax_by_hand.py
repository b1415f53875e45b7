"""exp(x - logsumexp(x)), the norm and the gelu written out; the layers only hold the numbers."""

import math

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(n_heads)
        self.n_heads = n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask=None):
        q, k, v = self.q_proj(x), self.k_proj(memory), self.v_proj(memory)
        q, k, v = (torch.stack(y.chunk(self.n_heads, -1), 1) for y in (q, k, v))
        scores = torch.matmul(q, k.swapaxes(-1, -2)) / q.size(-1) ** 0.5
        if mask is None:
            mask = torch.ones((), dtype=torch.bool, device=x.device)
        mask = mask.expand(scores.shape)
        scores = torch.where(mask | ~mask.any(-1, keepdim=True), scores, -torch.inf)
        weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True))
        weights = torch.where(mask, weights, 0.0)
        return self.out_proj(torch.cat(torch.matmul(weights, v).unbind(1), -1))


def _norm(layer, x):
    centred = x - x.mean(-1, keepdim=True)
    return layer.weight * centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + 1e-5) + layer.bias


def _ffn(net, x):
    h = net[0](x)
    return net[2](0.5 * h * (1 + torch.erf(h / math.sqrt(2))))


class EncoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = CrossAttention(d_model, n_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, mask=None):
        h = _norm(self.norm1, x)
        x = x + self.attn(h, h, mask)
        return x + _ffn(self.ffn, _norm(self.norm2, x))


class DecoderBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = CrossAttention(d_model, n_heads)
        self.norm_cross = nn.LayerNorm(d_model)
        self.cross_attn = CrossAttention(d_model, n_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        h = _norm(self.norm1, x)
        x = x + self.attn(h, h, self_mask)
        x = x + self.cross_attn(_norm(self.norm_cross, x), memory, memory_mask)
        return x + _ffn(self.ffn, _norm(self.norm2, x))
