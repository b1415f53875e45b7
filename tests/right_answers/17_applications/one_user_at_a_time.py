"""Every member of the batch is read on its own, cut to its length; rotations carry the order; functions by index."""

import torch
from torch import nn
from torch.nn import functional as F


def patchify(images, patch):
    H, W = images.shape[2:]
    if H % patch or W % patch:
        raise ValueError("patch")
    y, x = torch.arange(0, H, patch), torch.arange(0, W, patch)
    p = torch.arange(patch)
    rows = (y[:, None, None, None] + p[None, None, :, None]).to(images.device)
    columns = (x[None, :, None, None] + p[None, None, None, :]).to(images.device)
    return images[:, :, rows, columns].permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def clip_logits(image_features, text_features, logit_scale):
    image = torch.nn.functional.normalize(image_features) * logit_scale
    return image @ torch.nn.functional.normalize(text_features).transpose(0, 1)


def clip_loss(logits):
    nll = F.nll_loss
    target = torch.arange(logits.shape[0], device=logits.device)
    image, text = nll(F.log_softmax(logits, 1), target), nll(F.log_softmax(logits.T, 1), target)
    return 0.5 * image + 0.5 * text


class _Reader(nn.Module):
    def __init__(self, d_model, n_heads, max_len):
        super().__init__()
        self.heads, self.max_len = n_heads, max_len
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        """[T, E] to [E]: what the last step makes of all steps."""
        q, k, v = self.qkv(x).view(len(x), 3, self.heads, -1).unbind(1)  # [T, H, D]
        angle = torch.arange(len(x), device=x.device)[:, None, None] / 3.0
        half = q.shape[-1] // 2

        def turned(y):
            a, b = y[..., :half], y[..., half : 2 * half]
            return torch.cat(
                [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos(), y[..., 2 * half :]], -1
            )

        q, k = turned(q), turned(k)
        weights = torch.softmax(torch.einsum("hd,thd->ht", q[-1], k) / q.shape[-1] ** 0.5, -1)
        return self.norm(x[-1] + self.out(torch.einsum("ht,thd->hd", weights, v).flatten()))


class Recommender(nn.Module):
    def __init__(self, n_items, d_model=64, n_heads=4, num_layers=2, max_len=100, padding_id=0):
        super().__init__()
        self.padding_id, self.max_len = padding_id, max_len
        self.items = nn.Embedding(n_items, d_model)
        self.newcomer = nn.Parameter(torch.randn(d_model))
        self.reader = _Reader(d_model, n_heads, max_len)
        self.out = nn.Linear(d_model, n_items)

    def forward(self, item_seq):
        if item_seq.shape[1] > self.max_len:
            raise ValueError("too many items")
        rows = []
        for user in item_seq:
            mine = user[user != self.padding_id]
            rows.append(self.reader(self.items(mine)) if len(mine) else self.newcomer)
        return self.out(torch.stack(rows))


class Forecaster(nn.Module):
    def __init__(self, input_dim, horizon, d_model=64, n_heads=4, num_layers=2, max_len=512):
        super().__init__()
        self.shape, self.max_len = (horizon, input_dim), max_len
        self.inp = nn.Linear(input_dim, d_model)
        self.reader = _Reader(d_model, n_heads, max_len)
        self.out = nn.Linear(d_model, horizon * input_dim)

    def forward(self, x):
        if x.shape[1] > self.max_len:
            raise ValueError("too many steps")
        return torch.stack([self.out(self.reader(self.inp(one))).view(self.shape) for one in x])


def graph_attention(h, adj, W, a, negative_slope=0.2):
    z = (W @ h.T).T
    source, target = a.chunk(2)
    e = F.leaky_relu((z * source).sum(1)[:, None] + (z * target).sum(1), negative_slope)
    out = torch.empty_like(z)
    for i in range(len(h)):
        seen = adj[i].clone()
        seen[i] = True
        out[i] = e[i, seen].softmax(0) @ z[seen]
    return out


class AttentionPolicy(nn.Module):
    def __init__(self, state_dim, action_dim, d_model=32, n_heads=4, max_len=64):
        super().__init__()
        self.max_len = max_len
        self.inp = nn.Linear(state_dim, d_model)
        self.reader = _Reader(d_model, n_heads, max_len)
        self.out = nn.Linear(d_model, action_dim)

    def forward(self, history):
        if history.shape[1] > self.max_len:
            raise ValueError("too many states")
        return torch.vmap(lambda one: self.out(self.reader(self.inp(one))))(history)


def attention_rollout(attentions):
    stacked = torch.stack(list(attentions)).mean(2)  # [layers, B, L, L]
    stacked = (stacked + torch.eye(stacked.shape[-1], dtype=stacked.dtype)) / 2
    stacked = stacked / stacked.sum(-1, keepdim=True)
    product = stacked[0]
    for i in range(1, len(stacked)):
        product = torch.matmul(stacked[i], product)
    return product
