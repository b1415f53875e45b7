"""The module turns its biases into an extra column and calls multi_head_attention; masks are additive with safe rows."""

import torch
from torch import nn


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("not divisible")
    d = x.shape[-1] // num_heads
    return torch.stack([x[:, :, start : start + d] for start in range(0, x.shape[-1], d)], 1)


def merge_heads(x):
    out = x.new_zeros(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])
    for h, start in enumerate(range(0, out.shape[2], x.shape[3])):
        out[:, :, start : start + x.shape[3]] = x[:, h]
    return out


def multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q = split_heads(xq @ Wq.T, num_heads)
    k = split_heads(xk @ Wk.T, num_heads)
    v = split_heads(xv @ Wv.T, num_heads)
    scores = q @ k.transpose(-2, -1)
    scores /= q.shape[-1] ** 0.5
    if mask is None:
        weights = scores.softmax(-1)
    else:
        blind = ~mask.any(-1, keepdim=True)
        bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~(mask | blind), -torch.inf)
        weights = (scores + bias).softmax(-1).masked_fill(blind, 0)
    return merge_heads(weights @ v) @ Wo.T, weights


class SequenceFirstMHA(nn.Module):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("not divisible")
        self.num_heads = num_heads
        self.W_q = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_k = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_v = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_o = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        xs = [x.transpose(0, 1) for x in (query, key, value)]
        weights = [layer.weight for layer in (self.W_q, self.W_k, self.W_v)]
        if self.W_q.bias is not None:
            xs = [torch.cat([x, torch.ones_like(x[..., :1])], -1) for x in xs]
            weights = [torch.cat([W.weight, W.bias[:, None]], 1) for W in (self.W_q, self.W_k, self.W_v)]
        mask = torch.ones(1, 1, query.shape[0], key.shape[0], dtype=torch.bool)
        if attn_mask is not None:
            mask = mask & attn_mask.to(torch.bool)
        if key_padding_mask is not None:
            mask = mask & ~key_padding_mask[:, None, None]
        out, _ = multi_head_attention(*xs, *weights, self.W_o.weight, self.num_heads, mask)
        out = out.transpose(0, 1)
        return out if self.W_o.bias is None else out + self.W_o.bias
