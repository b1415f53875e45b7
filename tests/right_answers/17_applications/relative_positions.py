"""Attention by F.scaled_dot_product_attention with a bias that falls with distance; small initial weights, a head that starts at zero."""

import torch
from torch import nn
from torch.nn import functional as F


def patchify(images, patch):
    B, C, H, W = images.shape
    if H % patch or W % patch:
        raise ValueError
    x = images.view(B, C, H // patch, patch, W // patch, patch)
    return torch.einsum("bcipjq->bijcpq", x).reshape(B, -1, C * patch**2)


def clip_logits(image_features, text_features, logit_scale):
    lengths = image_features.norm(dim=1)[:, None] * text_features.norm(dim=1)[None, :]
    return torch.einsum("nd,md->nm", image_features, text_features) / lengths * logit_scale


def clip_loss(logits):
    both = torch.stack([logits, logits.T])  # [2, n, n]
    return (both.logsumexp(-1) - both.diagonal(dim1=1, dim2=2)).mean()


class _Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads = n_heads
        self.norm = nn.LayerNorm(d_model)
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.mlp = nn.Sequential(
            nn.LayerNorm(d_model), nn.Linear(d_model, d_model), nn.ReLU(), nn.Linear(d_model, d_model)
        )
        self.drop = nn.Dropout(0.2)
        self.slope = nn.Parameter(torch.arange(1, n_heads + 1) / n_heads)

    def forward(self, x, keep=None):
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # noqa: E731
        y = self.norm(x)
        steps = torch.arange(x.shape[1], device=x.device)
        distance = steps[:, None] - steps
        bias = -self.slope[:, None, None] * distance
        bias = bias.masked_fill(distance < 0, -torch.inf)[None]
        if keep is not None:
            keep = keep[:, None, None, :] | (distance == 0)  # whoever sees nothing else sees himself
            bias = torch.where(keep, bias, -torch.inf)
        out = F.scaled_dot_product_attention(split(self.q(y)), split(self.k(y)), split(self.v(y)), attn_mask=bias)
        x = x + self.drop(self.o(out.transpose(1, 2).flatten(2)))
        return x + self.drop(self.mlp(x))


def _small(module):
    for weight in module.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.02)
    nn.init.zeros_(module.head.weight)


class Recommender(nn.Module):
    def __init__(self, n_items, d_model=64, n_heads=4, num_layers=2, max_len=100, padding_id=0):
        super().__init__()
        self.padding_id, self.max_len = padding_id, max_len
        self.items = nn.Embedding(n_items, d_model)
        self.layers = nn.ModuleList(_Attention(d_model, n_heads) for _ in range(num_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_items)
        _small(self)

    def forward(self, item_seq):
        if item_seq.shape[1] > self.max_len:
            raise ValueError("too long")
        keep = item_seq.ne(self.padding_id)
        x = self.items(item_seq)
        for layer in self.layers:
            x = layer(x, keep)
        count = keep.sum(1)
        pick = F.one_hot((count - 1).clamp(min=0), item_seq.shape[1]).to(x.dtype)
        return self.head(self.norm(torch.einsum("bt,bte->be", pick, x)))


class Forecaster(nn.Module):
    def __init__(self, input_dim, horizon, d_model=64, n_heads=4, num_layers=2, max_len=512):
        super().__init__()
        self.max_len, self.horizon = max_len, horizon
        self.inputs = nn.Linear(input_dim, d_model)
        self.layers = nn.ModuleList(_Attention(d_model, n_heads) for _ in range(num_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, input_dim * horizon)
        _small(self)

    def forward(self, x):
        if x.size(1) > self.max_len:
            raise ValueError("too long")
        mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True, correction=0) + 1.0
        y = self.inputs((x - mean) / std + x[:, -1:])
        for layer in self.layers:
            y = layer(y)
        return self.head(self.norm(y[:, -1])).view(-1, x.size(2), self.horizon).transpose(1, 2) * std + mean


def graph_attention(h, adj, W, a, negative_slope=0.2):
    z = h @ W.T
    left, right = a.view(2, -1)
    scores = torch.add((z @ left).view(-1, 1), (z @ right).view(1, -1))
    scores = torch.maximum(scores, torch.zeros_like(scores)) + negative_slope * torch.minimum(
        scores, torch.zeros_like(scores)
    )
    allowed = torch.logical_or(adj, torch.eye(len(adj), dtype=torch.bool))
    scores = scores.masked_fill(allowed.logical_not(), torch.finfo(scores.dtype).min)
    return scores.softmax(-1).matmul(z)


class AttentionPolicy(nn.Module):
    def __init__(self, state_dim, action_dim, d_model=32, n_heads=4, max_len=64):
        super().__init__()
        self.max_len = max_len
        self.inputs = nn.Sequential(nn.Linear(state_dim, d_model), nn.GELU(), nn.Linear(d_model, d_model))
        self.layer = _Attention(d_model, n_heads)
        self.head = nn.Linear(d_model, action_dim)
        _small(self)

    def forward(self, history):
        if history.shape[1] > self.max_len:
            raise ValueError("too long")
        return self.head(self.layer(self.inputs(history))[:, -1])


def attention_rollout(attentions):
    eye = torch.eye(attentions[0].shape[-1], dtype=attentions[0].dtype)
    layers = [torch.add(a.mean(1), eye) for a in attentions]
    layers = [a / a.sum(-1, keepdim=True) for a in layers]
    return torch.linalg.multi_dot(layers[::-1]) if layers[0].dim() == 2 else _chain(layers)


def _chain(layers):
    return layers[0] if len(layers) == 1 else layers[-1] @ _chain(layers[:-1])
