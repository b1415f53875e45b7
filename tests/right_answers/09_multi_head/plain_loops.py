"""One query, one head, one sample at a time."""

import torch
from torch import nn


def split_heads(x, num_heads):
    batch, length, width = x.shape
    if width % num_heads != 0:
        raise ValueError("heads do not divide")
    d = width // num_heads
    samples = []
    for b in range(batch):
        heads = []
        for h in range(num_heads):
            heads.append(torch.stack([x[b, t, h * d : (h + 1) * d] for t in range(length)]))
        samples.append(torch.stack(heads))
    return torch.stack(samples)


def merge_heads(x):
    rows = [[torch.cat([head[t] for head in sample]) for t in range(x.shape[2])] for sample in x]
    return torch.stack([torch.stack(row) for row in rows])


def _one(query, keys, values, allowed):
    keys, values = keys[allowed], values[allowed]
    if len(keys) == 0:
        return torch.zeros(values.shape[-1], dtype=values.dtype), torch.zeros(allowed.shape, dtype=values.dtype)
    weights = torch.softmax(keys @ query / len(query) ** 0.5, 0)
    spread = torch.zeros(allowed.shape, dtype=weights.dtype).masked_scatter(allowed, weights)
    return weights @ values, spread


def _attention(q, k, v, mask):
    outs, weights = [], []
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(q.shape[2]):
                out, weight = _one(q[b, h, i], k[b, h], v[b, h], mask[b, h, i])
                outs.append(out)
                weights.append(weight)
    return torch.stack(outs).view(*q.shape[:3], -1), torch.stack(weights).view(*q.shape[:3], -1)


def multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = split_heads(xq @ Wq.T, num_heads), split_heads(xk @ Wk.T, num_heads), split_heads(xv @ Wv.T, num_heads)
    if mask is None:
        mask = torch.tensor(True)
    out, weights = _attention(q, k, v, mask.broadcast_to(*q.shape[:3], k.shape[2]))
    return merge_heads(out) @ Wo.T, weights


class SequenceFirstMHA(nn.Module):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("heads do not divide")
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(embed_dim, embed_dim, bias) for _ in range(4))

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        samples = []
        for b in range(query.shape[1]):
            q, k, v = self.W_q(query[:, b]), self.W_k(key[:, b]), self.W_v(value[:, b])
            rows = []
            for i in range(len(q)):
                allowed = torch.ones(len(k), dtype=torch.bool)
                if key_padding_mask is not None:
                    allowed &= ~key_padding_mask[b]
                if attn_mask is not None:
                    allowed &= attn_mask[i].bool()
                cut = lambda x: x.chunk(self.num_heads, -1)  # noqa: E731
                heads = zip(cut(q[i]), cut(k), cut(v), strict=True)
                rows.append(torch.cat([_one(*head, allowed)[0] for head in heads]))
            samples.append(torch.stack(rows))
        return self.W_o(torch.stack(samples, 1))
