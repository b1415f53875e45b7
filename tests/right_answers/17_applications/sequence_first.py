"""Time first inside, as older PyTorch wants it; sinusoidal positions in a buffer; F.unfold; the loss by log_softmax."""

import math

import torch
from torch import nn
from torch.nn import functional as F


def patchify(images, patch):
    if images.shape[2] % patch != 0 or images.shape[3] % patch != 0:
        raise ValueError("not divisible")
    if not images.is_floating_point():
        return patchify(images.double(), patch).to(images.dtype)
    return F.unfold(images, patch, stride=patch).transpose(1, 2)


def clip_logits(image_features, text_features, logit_scale):
    return logit_scale * F.cosine_similarity(image_features[:, None], text_features[None], dim=-1)


def clip_loss(logits):
    rows, columns = logits.log_softmax(1), logits.log_softmax(0)
    return -(rows.diagonal().mean() + columns.diagonal().mean()) / 2


def _sinusoids(length, width):
    angle = torch.arange(length)[:, None] * torch.exp(-math.log(10000) * torch.arange(0, width, 2) / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, None, :width]  # [T, 1, E]


class _Encoder(nn.Module):
    def __init__(self, d_model, n_heads, num_layers, max_len):
        super().__init__()
        self.max_len = max_len
        self.register_buffer("pe", _sinusoids(max_len, d_model))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, n_heads, 2 * d_model, norm_first=True) for _ in range(num_layers)
        )

    def forward(self, x, pad=None):
        if len(x) > self.max_len:
            raise ValueError("the sequence is too long")
        x = x + self.pe[: len(x)]
        future = torch.full((len(x), len(x)), float("-inf"), device=x.device).triu(1)
        bias = None if pad is None else torch.zeros(pad.shape, device=x.device).masked_fill(pad, float("-inf"))
        for layer in self.layers:
            x = layer(x, src_mask=future, src_key_padding_mask=bias)
        return x


class Recommender(nn.Module):
    def __init__(self, n_items, d_model=64, n_heads=4, num_layers=2, max_len=100, padding_id=0):
        super().__init__()
        self.padding_id = padding_id
        self.embed = nn.Embedding(n_items + 1, d_model)  # one more: the beginning of every history
        self.start = n_items
        self.encoder = _Encoder(d_model, n_heads, num_layers, max_len + 1)
        self.out = nn.Linear(d_model, n_items)

    def forward(self, item_seq):
        if item_seq.size(1) >= self.encoder.max_len:
            raise ValueError("too many items")
        begun = F.pad(item_seq, (1, 0), value=self.start)
        pad = begun == self.padding_id
        x = self.encoder(self.embed(begun).transpose(0, 1), pad).transpose(0, 1)
        last = (~pad).sum(1) - 1
        return self.out(x.gather(1, last[:, None, None].expand(-1, 1, x.size(2))).squeeze(1))


class Forecaster(nn.Module):
    def __init__(self, input_dim, horizon, d_model=64, n_heads=4, num_layers=2, max_len=512):
        super().__init__()
        self.project = nn.Linear(input_dim, d_model)
        self.encoder = _Encoder(d_model, n_heads, num_layers, max_len)
        self.heads = nn.ModuleList(nn.Linear(d_model, input_dim) for _ in range(horizon))

    def forward(self, x):
        last = self.encoder(self.project(x).transpose(0, 1))[-1]
        return x[:, -1:] + torch.stack([head(last) for head in self.heads], 1)


def graph_attention(h, adj, W, a, negative_slope=0.2):
    z = torch.matmul(h, W.t())
    n = z.size(0)
    pairs = torch.cat([z.repeat_interleave(n, 0), z.repeat(n, 1)], dim=1)  # [n·n, 2·d_out]
    e = F.leaky_relu(torch.matmul(pairs, a), negative_slope).view(n, n)
    allowed = adj + torch.eye(n, dtype=torch.bool, device=h.device)
    return torch.softmax(e.masked_fill(allowed == 0, float("-inf")), dim=-1) @ z


class AttentionPolicy(nn.Module):
    def __init__(self, state_dim, action_dim, d_model=32, n_heads=4, max_len=64):
        super().__init__()
        self.project = nn.Linear(state_dim, d_model)
        self.encoder = _Encoder(d_model, n_heads, 1, max_len)
        self.out = nn.Linear(d_model, action_dim)

    def forward(self, history):
        return self.out(self.encoder(self.project(history).transpose(0, 1))[-1])


def attention_rollout(attentions):
    mixed = []
    for layer in attentions:
        layer = 0.5 * layer.sum(1) / layer.size(1) + 0.5 * torch.eye(layer.size(-1), dtype=layer.dtype)
        mixed.append(layer / layer.sum(-1, keepdim=True))
    while len(mixed) > 1:
        first, second, *rest = mixed
        mixed = [torch.bmm(second, first), *rest]
    return mixed[0]
