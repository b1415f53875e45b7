"""Batch and heads folded into one axis, scores by baddbmm with a bias whose blind rows are kept finite."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def split_heads(x, num_heads):
    B, L, E = x.size()
    if E % num_heads != 0:
        raise ValueError(f"embed dim {E} is not divisible by {num_heads}")
    return x.view(B, L, num_heads, E // num_heads).permute(0, 2, 1, 3).contiguous()


def merge_heads(x):
    B, H, L, D = x.size()
    return x.permute(0, 2, 1, 3).contiguous().view(B, L, H * D)


def _attend(q, k, v, mask):
    B, H, Lq, D = q.shape
    Lk, Dv = v.shape[-2:]
    q, k, v = q.reshape(B * H, Lq, D), k.reshape(B * H, Lk, D), v.reshape(B * H, Lk, Dv)
    if mask is None:
        mask = torch.ones(1, dtype=torch.bool, device=q.device)
    mask = mask.expand(B, H, Lq, Lk).reshape(B * H, Lq, Lk)
    seeing = mask.any(dim=-1, keepdim=True)
    bias = torch.zeros_like(mask, dtype=q.dtype)
    bias[~mask & seeing] = float("-inf")
    weights = F.softmax(torch.baddbmm(bias, q, k.mT, alpha=D**-0.5), dim=-1) * seeing.to(q.dtype)
    return torch.bmm(weights, v).view(B, H, Lq, Dv), weights.view(B, H, Lq, Lk)


def multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q = split_heads(F.linear(xq, Wq), num_heads)
    k = split_heads(F.linear(xk, Wk), num_heads)
    v = split_heads(F.linear(xv, Wv), num_heads)
    out, weights = _attend(q, k, v, mask)
    return F.linear(merge_heads(out), Wo), weights


class SequenceFirstMHA(nn.Module):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        for name in ("q", "k", "v", "o"):
            self.add_module(f"W_{name}", nn.Linear(embed_dim, embed_dim, bias=bias))

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        Tq, B, E = query.shape
        Tk = key.shape[0]
        q = self.W_q(query).view(Tq, B, self.num_heads, self.head_dim).permute(1, 2, 0, 3)
        k = self.W_k(key).view(Tk, B, self.num_heads, self.head_dim).permute(1, 2, 0, 3)
        v = self.W_v(value).view(Tk, B, self.num_heads, self.head_dim).permute(1, 2, 0, 3)
        mask = torch.ones(B, self.num_heads, Tq, Tk, dtype=torch.bool)
        if key_padding_mask is not None:
            mask = mask.masked_fill(key_padding_mask.view(B, 1, 1, Tk), False)
        if attn_mask is not None:
            mask = mask.masked_fill((attn_mask == 0).view(1, 1, Tq, Tk), False)
        out, _ = _attend(q, k, v, mask)
        return self.W_o(out.permute(2, 0, 1, 3).reshape(Tq, B, E))
