"""PyTorch's own encoder with batch_first, learned positions that start at zero, and F.cross_entropy."""

import torch
from torch import nn
from torch.nn import functional as F


def patchify(images, patch):
    if images.shape[-1] % patch or images.shape[-2] % patch:
        raise ValueError("the patch does not divide the image")
    return images.unfold(2, patch, patch).unfold(3, patch, patch).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def clip_logits(image_features, text_features, logit_scale):
    return logit_scale * F.normalize(image_features, dim=-1) @ F.normalize(text_features, dim=-1).t()


def clip_loss(logits):
    target = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


def _encoder(d_model, n_heads, num_layers):
    layer = nn.TransformerEncoderLayer(d_model, n_heads, 4 * d_model, dropout=0.1, batch_first=True)
    return nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)


def _future(length, device):
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


class Recommender(nn.Module):
    def __init__(self, n_items, d_model=64, n_heads=4, num_layers=2, max_len=100, padding_id=0):
        super().__init__()
        self.padding_id, self.max_len = padding_id, max_len
        self.item = nn.Embedding(n_items, d_model, padding_idx=padding_id)
        self.position = nn.Parameter(torch.zeros(1, max_len, d_model))
        self.encoder = _encoder(d_model, n_heads, num_layers)
        self.head = nn.Linear(d_model, n_items)

    def forward(self, item_seq):
        B, T = item_seq.shape
        if self.max_len < T:
            raise ValueError(f"at most {self.max_len} items")
        pad = item_seq == self.padding_id
        last = ((~pad).sum(1) - 1).clamp(min=0)
        pad = pad.clone()
        pad[:, 0] = False  # nobody is left without a key
        x = self.item(item_seq) + self.position[:, :T]
        x = self.encoder(x, mask=_future(T, x.device), src_key_padding_mask=pad)
        return self.head(x[torch.arange(B, device=x.device), last])


class Forecaster(nn.Module):
    def __init__(self, input_dim, horizon, d_model=64, n_heads=4, num_layers=2, max_len=512):
        super().__init__()
        self.horizon, self.max_len = horizon, max_len
        self.inp = nn.Linear(input_dim, d_model)
        self.position = nn.Parameter(torch.zeros(1, max_len, d_model))
        self.encoder = _encoder(d_model, n_heads, num_layers)
        self.head = nn.Linear(d_model, horizon * input_dim)

    def forward(self, x):
        B, T, n = x.shape
        if self.max_len < T:
            raise ValueError(f"at most {self.max_len} steps")
        hidden = self.encoder(self.inp(x) + self.position[:, :T], mask=_future(T, x.device))
        return self.head(hidden[:, -1]).reshape(B, self.horizon, n)


def graph_attention(h, adj, W, a, negative_slope=0.2):
    z = F.linear(h, W)
    d = W.shape[0]
    e = F.leaky_relu((z @ a[:d]).unsqueeze(1) + (z @ a[d:]).unsqueeze(0), negative_slope)
    allowed = adj.clone()
    allowed.fill_diagonal_(True)
    return F.softmax(torch.where(allowed, e, -torch.inf), dim=1) @ z


class AttentionPolicy(nn.Module):
    def __init__(self, state_dim, action_dim, d_model=32, n_heads=4, max_len=64):
        super().__init__()
        self.max_len = max_len
        self.inp = nn.Linear(state_dim, d_model)
        self.position = nn.Embedding(max_len, d_model)
        self.attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.head = nn.Linear(d_model, action_dim)

    def forward(self, history):
        T = history.shape[1]
        if self.max_len < T:
            raise ValueError("too many states")
        x = self.inp(history) + self.position(torch.arange(T, device=history.device))
        out, _ = self.attention(x[:, -1:], x, x, need_weights=False)
        return self.head(x[:, -1] + out[:, 0])


def attention_rollout(attentions):
    result = torch.eye(attentions[0].shape[-1], dtype=attentions[0].dtype, device=attentions[0].device)
    for attention in attentions:
        a = attention.mean(dim=1) + torch.eye(attention.shape[-1], dtype=attention.dtype, device=attention.device)
        result = (a / a.sum(dim=-1, keepdim=True)) @ result
    return result
