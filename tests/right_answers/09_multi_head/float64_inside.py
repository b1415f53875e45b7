"""Everything is computed in float64 and cast back at the end."""

import torch
from torch import nn
from torch.nn import functional as F


def split_heads(x, num_heads):
    if x.shape[2] % num_heads > 0:
        raise ValueError("bad number of heads")
    return x.double().reshape(*x.shape[:2], num_heads, -1).swapaxes(1, 2).to(x.dtype)


def merge_heads(x):
    return x.double().swapaxes(1, 2).flatten(2).to(x.dtype)


def _weights(q, k, mask):
    scores = (q @ k.mT) / q.shape[-1] ** 0.5
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, lowest).softmax(-1)
    return weights.masked_fill(~mask, 0.0)


def multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    dtype = xq.dtype
    xq, xk, xv, Wq, Wk, Wv, Wo = (t.double() for t in (xq, xk, xv, Wq, Wk, Wv, Wo))
    q, k, v = (split_heads(x @ W.T, num_heads) for x, W in ((xq, Wq), (xk, Wk), (xv, Wv)))
    weights = _weights(q, k, mask)
    return (merge_heads(weights @ v) @ Wo.T).to(dtype), weights.to(dtype)


class SequenceFirstMHA(nn.Module):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__()
        if embed_dim % num_heads > 0:
            raise ValueError("bad number of heads")
        self.num_heads = num_heads
        self.W_q = nn.Linear(embed_dim, embed_dim, bias)
        self.W_k = nn.Linear(embed_dim, embed_dim, bias)
        self.W_v = nn.Linear(embed_dim, embed_dim, bias)
        self.W_o = nn.Linear(embed_dim, embed_dim, bias)

    @staticmethod
    def _apply_layer(layer, x):
        return F.linear(x.double(), layer.weight.double(), None if layer.bias is None else layer.bias.double())

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        q, k, v = (
            split_heads(self._apply_layer(layer, x).swapaxes(0, 1), self.num_heads)
            for layer, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        mask = torch.ones(q.shape[0], 1, q.shape[2], k.shape[2], dtype=torch.bool)
        if key_padding_mask is not None:
            mask = mask & (key_padding_mask == 0)[:, None, None, :]
        if attn_mask is not None:
            mask = mask & (attn_mask != 0)[None, None]
        heads = _weights(q, k, mask) @ v
        return self._apply_layer(self.W_o, merge_heads(heads).swapaxes(0, 1)).to(query.dtype)
