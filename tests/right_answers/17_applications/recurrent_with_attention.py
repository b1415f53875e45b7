"""A GRU carries the order and attention looks back over it; functions compute in float64 and return the input's dtype."""

import torch
from torch import nn


def patchify(images, patch):
    H, W = images.shape[2:]
    if (H // patch) * patch != H or (W // patch) * patch != W:
        raise ValueError(f"{H} and {W} must be multiples of {patch}")
    rows = images.chunk(H // patch, dim=2)
    return torch.stack([block.flatten(1) for row in rows for block in row.chunk(W // patch, dim=3)], 1)


def clip_logits(image_features, text_features, logit_scale):
    i, t = image_features.double(), text_features.double()
    i = i * i.pow(2).sum(-1, keepdim=True).rsqrt()
    t = t * t.pow(2).sum(-1, keepdim=True).rsqrt()
    return (logit_scale * (i @ t.mT)).to(image_features.dtype)


def clip_loss(logits):
    x = logits.double()
    x = x - x.max().detach() if x.abs().max() < 50 else x
    right = torch.eye(len(x), dtype=torch.float64, device=x.device)
    rows, columns = x.log_softmax(dim=1), x.log_softmax(dim=0)
    return (-(right * (rows + columns)).sum() / (2 * len(x))).to(logits.dtype)


class _Memory(nn.Module):
    def __init__(self, d_model, n_heads, num_layers, max_len):
        super().__init__()
        self.max_len = max_len
        self.gru = nn.GRU(d_model, d_model, num_layers, batch_first=True)
        self.attention = nn.MultiheadAttention(d_model, n_heads, dropout=0.1, add_zero_attn=True)

    def forward(self, x, lengths):
        if x.shape[1] > self.max_len:
            raise ValueError("more steps than max_len")
        hidden, _ = self.gru(x)
        step = torch.arange(x.shape[1], device=x.device)
        last = hidden[torch.arange(len(x), device=x.device), (lengths - 1).clamp(min=0)]
        drop = step >= lengths[:, None]
        memory = hidden.transpose(0, 1)
        out, _ = self.attention(last[None], memory, memory, key_padding_mask=drop)
        return (last + out[0]) * (lengths > 0)[:, None]


class Recommender(nn.Module):
    def __init__(self, n_items, d_model=64, n_heads=4, num_layers=2, max_len=100, padding_id=0):
        super().__init__()
        self.padding_id = padding_id
        self.items = nn.Embedding(n_items, d_model)
        self.memory = _Memory(d_model, n_heads, num_layers, max_len)
        self.out = nn.Linear(d_model, n_items)

    def forward(self, item_seq):
        return self.out(self.memory(self.items(item_seq), (item_seq != self.padding_id).sum(1))).log_softmax(-1)


class Forecaster(nn.Module):
    def __init__(self, input_dim, horizon, d_model=64, n_heads=4, num_layers=2, max_len=512):
        super().__init__()
        self.horizon = horizon
        self.inp = nn.Linear(input_dim, d_model)
        self.memory = _Memory(d_model, n_heads, num_layers, max_len)
        self.cell = nn.GRUCell(input_dim, d_model)
        self.out = nn.Linear(d_model, input_dim)

    def forward(self, x):
        state = self.memory(self.inp(x), torch.full((len(x),), x.shape[1], device=x.device))
        step, steps = x[:, -1], []
        for _ in range(self.horizon):
            state = self.cell(step, state)
            step = step + self.out(state)
            steps.append(step)
        return torch.stack(steps, dim=1)


def graph_attention(h, adj, W, a, negative_slope=0.2):
    z = h.double() @ W.double().T
    d = z.shape[1]
    e = z @ a[:d].double()[:, None] + (z @ a[d:].double()[:, None]).T
    e = torch.where(e < 0, e * negative_slope, e)
    allowed = adj | (torch.arange(len(h))[:, None] == torch.arange(len(h)))
    top = e.masked_fill(~allowed, -torch.inf).amax(1, keepdim=True).detach()
    weights = torch.exp(torch.where(allowed, e - top, 0.0)) * allowed
    return ((weights / weights.sum(1, keepdim=True)) @ z).to(h.dtype)


class AttentionPolicy(nn.Module):
    def __init__(self, state_dim, action_dim, d_model=32, n_heads=4, max_len=64):
        super().__init__()
        self.inp = nn.Linear(state_dim, d_model)
        self.memory = _Memory(d_model, n_heads, 1, max_len)
        self.out = nn.Linear(d_model, action_dim)

    def forward(self, history):
        lengths = torch.full((len(history),), history.shape[1], device=history.device)
        return self.out(self.memory(self.inp(history), lengths))


def attention_rollout(attentions):
    out = None
    for layer in attentions:
        a = layer.double().mean(1)
        a = a + torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
        a = a / a.sum(-1).unsqueeze(-1)
        out = a if out is None else torch.einsum("bij,bjk->bik", a, out)
    return out.to(attentions[0].dtype)
