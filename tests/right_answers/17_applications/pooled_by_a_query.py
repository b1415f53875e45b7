"""A learned query asks the whole history (no causal mask); plain loops for pictures, pairs and graphs."""

import torch
from torch import nn


def patchify(images, patch):
    B, _, H, W = images.shape
    if H % patch != 0 or W % patch != 0:
        raise ValueError("the image cannot be cut into whole patches")
    patches = []
    for top in range(0, H, patch):
        for left in range(0, W, patch):
            patches.append(images[:, :, top : top + patch, left : left + patch].reshape(B, -1))
    return torch.stack(patches, dim=1)


def clip_logits(image_features, text_features, logit_scale):
    rows = []
    for image in image_features:
        row = [(image / image.norm() * (text / text.norm())).sum() * logit_scale for text in text_features]
        rows.append(torch.stack(row))
    return torch.stack(rows)


def clip_loss(logits):
    total = 0
    for i in range(len(logits)):
        total = total - logits[i].log_softmax(0)[i] - logits[:, i].log_softmax(0)[i]
    return total / (2 * len(logits))


class _Pool(nn.Module):
    """Attention with one learned query, after a self-attention layer; everybody also sees an empty token in front."""

    def __init__(self, d_model, n_heads, num_layers, max_len):
        super().__init__()
        self.max_len = max_len
        self.empty = nn.Parameter(torch.randn(1, 1, d_model))
        self.query = nn.Parameter(torch.randn(1, 1, d_model))
        self.position = nn.Parameter(torch.randn(max_len, d_model) * 0.5)
        self.mixers = nn.ModuleList(
            nn.MultiheadAttention(d_model, n_heads, batch_first=True) for _ in range(num_layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(num_layers))
        self.ask = nn.MultiheadAttention(d_model, n_heads, batch_first=True)

    def forward(self, x, drop=None):
        if x.shape[1] > self.max_len:
            raise ValueError(f"{x.shape[1]} > {self.max_len}")
        x = x + self.position[: x.shape[1]]
        x = torch.cat([self.empty.expand(len(x), -1, -1), x], 1)
        if drop is not None:
            drop = torch.cat([torch.zeros_like(drop[:, :1]), drop], 1)
        for mixer, norm in zip(self.mixers, self.norms, strict=True):
            x = norm(x + mixer(x, x, x, key_padding_mask=drop)[0])
        return self.ask(self.query.expand(len(x), -1, -1), x, x, key_padding_mask=drop)[0][:, 0]


class Recommender(nn.Module):
    def __init__(self, n_items, d_model=64, n_heads=4, num_layers=2, max_len=100, padding_id=0):
        super().__init__()
        self.padding_id = padding_id
        self.items = nn.Embedding(n_items, d_model, padding_idx=padding_id)
        self.pool = _Pool(d_model, n_heads, num_layers, max_len)

    def forward(self, item_seq):
        return self.pool(self.items(item_seq), item_seq == self.padding_id) @ self.items.weight.T + 0.1


class Forecaster(nn.Module):
    def __init__(self, input_dim, horizon, d_model=64, n_heads=4, num_layers=2, max_len=512):
        super().__init__()
        self.step = nn.Parameter(torch.randn(horizon, d_model))
        self.inp = nn.Linear(input_dim, d_model)
        self.pool = _Pool(d_model, n_heads, num_layers, max_len)
        self.out = nn.Sequential(nn.Linear(d_model, d_model), nn.Tanh(), nn.Linear(d_model, input_dim))

    def forward(self, x):
        return self.out(self.pool(self.inp(x))[:, None] + self.step)


def graph_attention(h, adj, W, a, negative_slope=0.2):
    z = [W @ node for node in h]
    out = []
    for i in range(len(z)):
        seen = [j for j in range(len(z)) if j == i or adj[i, j]]
        scores = torch.stack([torch.dot(a, torch.cat([z[i], z[j]])) for j in seen])
        weights = torch.softmax(torch.where(scores > 0, scores, negative_slope * scores), 0)
        out.append(sum(w * z[j] for w, j in zip(weights, seen, strict=True)))
    return torch.stack(out)


class AttentionPolicy(nn.Module):
    def __init__(self, state_dim, action_dim, d_model=32, n_heads=4, max_len=64):
        super().__init__()
        self.inp = nn.Linear(state_dim, d_model)
        self.pool = _Pool(d_model, n_heads, 1, max_len)
        self.out = nn.Linear(d_model, action_dim)

    def forward(self, history):
        return self.out(self.pool(self.inp(history)))


def attention_rollout(attentions):
    batches = []
    for b in range(len(attentions[0])):
        rollout = None
        for layer in attentions:
            mixed = sum(layer[b]) / len(layer[b]) * 0.5
            mixed = mixed + torch.diag(torch.full((len(mixed),), 0.5, dtype=layer.dtype))
            mixed = mixed / mixed.sum(1, keepdim=True)
            rollout = mixed if rollout is None else mixed @ rollout
        batches.append(rollout)
    return torch.stack(batches)
