"""A list comprehension over the heads; the output matrix is applied block by block and the results are added."""

import torch
from torch import nn


def split_heads(x, num_heads):
    width, rest = divmod(x.size(-1), num_heads)
    if rest:
        raise ValueError("the width is not a multiple of the number of heads")
    return torch.stack(x.split(width, dim=-1), dim=1)


def merge_heads(x):
    return torch.cat(x.unbind(1), dim=-1)


def _head(q, k, v, mask):
    scores = torch.matmul(q, k.transpose(1, 2)) / torch.sqrt(torch.tensor(q.shape[-1], dtype=torch.float32))
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        weights = torch.where(mask, scores, -torch.inf).softmax(dim=-1)
        weights = torch.where(mask, weights, 0.0)
    return weights @ v, weights


def multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    for W in (Wq, Wk, Wv):
        if W.shape[0] % num_heads:
            raise ValueError("the rows are not a multiple of the number of heads")
    if mask is not None:
        mask = mask.expand(xq.shape[0], num_heads, xq.shape[1], xk.shape[1])
    blocks = zip(Wq.chunk(num_heads), Wk.chunk(num_heads), Wv.chunk(num_heads), strict=True)
    heads = [
        _head(xq @ q.T, xk @ k.T, xv @ v.T, None if mask is None else mask[:, h]) for h, (q, k, v) in enumerate(blocks)
    ]
    out = sum(head @ block.T for (head, _), block in zip(heads, Wo.chunk(num_heads, dim=1), strict=True))
    return out, torch.stack([weights for _, weights in heads], dim=1)


class SequenceFirstMHA(nn.Module):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("the width is not a multiple of the number of heads")
        self.heads = num_heads
        self.W_q = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_k = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_v = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_o = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        mask = None
        if key_padding_mask is not None:
            mask = ~key_padding_mask.unsqueeze(1)
        if attn_mask is not None:
            attn_mask = attn_mask.bool().unsqueeze(0)
            mask = attn_mask if mask is None else torch.logical_and(mask, attn_mask)
        q, k, v = (
            layer(x).transpose(0, 1).chunk(self.heads, dim=-1)
            for layer, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        heads = [_head(*three, mask)[0] for three in zip(q, k, v, strict=True)]
        return self.W_o(torch.cat(heads, dim=-1)).transpose(0, 1)
