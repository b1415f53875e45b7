"""Chapter 17: the same attention in pictures, pairs, shopping baskets, series, graphs, policies and heat maps."""

import torch
from torch import nn


def patchify(images, patch):
    """Cut images into square patches, row by row; a patch lists channel, row, column.

    images (B, C, H, W)   ->   (B, N, C·p·p) with N = (H/p)·(W/p)
    """
    batch, channels, height, width = images.shape
    if height % patch or width % patch:
        raise ValueError(f"patches of {patch} do not divide an image of {height} × {width}")
    rows, columns = height // patch, width // patch
    cut = images.reshape(batch, channels, rows, patch, columns, patch)
    return cut.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, channels * patch * patch)


def clip_logits(image_features, text_features, logit_scale):
    """Cosine of every image with every text, times the scale.   (n, d), (m, d)   ->   (n, m)"""
    image_features = image_features / image_features.norm(dim=-1, keepdim=True)
    text_features = text_features / text_features.norm(dim=-1, keepdim=True)
    return logit_scale * image_features @ text_features.T


def clip_loss(logits):
    """How surprised each image is by its text and each text by its image, on average.   (n, n)   ->   ()

    Pair i stands on the diagonal.
    """
    pairs = logits.diagonal()
    by_image = (torch.logsumexp(logits, 1) - pairs).mean()
    by_text = (torch.logsumexp(logits, 0) - pairs).mean()
    return (by_image + by_text) / 2


def graph_attention(h, adj, W, a, negative_slope=0.2):
    """One GAT head: a node mixes itself and the nodes it may look at, by additive scores.

    h (n, d_in)   adj (n, n), True where i may look at j   W (d_out, d_in)   a (2·d_out)   ->   (n, d_out)
    """
    z = h @ W.T
    asks, answers = z @ a[: z.shape[1]], z @ a[z.shape[1] :]
    scores = nn.functional.leaky_relu(asks[:, None] + answers[None, :], negative_slope)
    may_look = adj | torch.eye(len(h), dtype=torch.bool, device=h.device)
    return torch.softmax(scores.masked_fill(~may_look, -torch.inf), -1) @ z


def attention_rollout(attentions):
    """Follow attention through the layers, half of each token staying where it is.

    a list of (B, H, L, L), the first layer first   ->   (B, L, L)
    """
    rollout = None
    for weights in attentions:
        mixed = weights.mean(1) / 2 + torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device) / 2
        mixed = mixed / mixed.sum(-1, keepdim=True)  # matters for rows that did not sum to 1
        rollout = mixed if rollout is None else mixed @ rollout
    return rollout


class Block(nn.Module):
    """Attention and a small network, each after a norm and beside a residual.   (B, T, E)   ->   (B, T, E)"""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x, mask):
        batch, length, width = x.shape
        heads = self.qkv(self.norm1(x)).view(batch, length, 3, self.n_heads, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # (B, H, T, D) each
        scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
        weights = torch.softmax(scores, -1).masked_fill(~mask, 0.0)  # a blind query gets zeros
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.ffn(self.norm2(x))


class Reader(nn.Module):
    """Positions and causal blocks: what each step makes of itself and of what came before.

    x (B, T, E)   real (B, T), True on what is no padding   ->   (B, T, E)
    """

    def __init__(self, d_model, n_heads, num_layers, max_len):
        super().__init__()
        self.positions = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(num_layers))
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, real=None):
        length = x.shape[1]
        if length > self.positions.num_embeddings:
            raise ValueError(f"{length} steps, and only {self.positions.num_embeddings} positions")
        step = torch.arange(length, device=x.device)
        mask = step <= step[:, None]
        if real is not None:
            mask = mask & real[:, None, None, :]
        x = x + self.positions(step)
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)


class Recommender(nn.Module):
    """Scores for the next item from each user's own history, read at the last item that is no padding.

    item_seq (B, T), padded on the right   ->   (B, n_items)
    """

    def __init__(self, n_items, d_model=64, n_heads=4, num_layers=2, max_len=100, padding_id=0):
        super().__init__()
        self.padding_id = padding_id
        self.items = nn.Embedding(n_items, d_model)
        self.reader = Reader(d_model, n_heads, num_layers, max_len)
        self.output = nn.Linear(d_model, n_items)

    def forward(self, item_seq):
        real = item_seq != self.padding_id
        x = self.reader(self.items(item_seq), real)
        last = (real.sum(1) - 1).clamp(min=0)  # a user without history is read at place 0, which sees nothing
        return self.output(x[torch.arange(len(x), device=x.device), last])


class Forecaster(nn.Module):
    """The next `horizon` steps of every series, all at once, from the last step's view of the past.

    x (B, T, F)   ->   (B, horizon, F)
    """

    def __init__(self, input_dim, horizon, d_model=64, n_heads=4, num_layers=2, max_len=512):
        super().__init__()
        self.horizon = horizon
        self.input = nn.Linear(input_dim, d_model)
        self.reader = Reader(d_model, n_heads, num_layers, max_len)
        self.output = nn.Linear(d_model, horizon * input_dim)

    def forward(self, x):
        return self.output(self.reader(self.input(x))[:, -1]).view(len(x), self.horizon, x.shape[2])


class AttentionPolicy(nn.Module):
    """Logits of the actions, from the states so far in their order.   history (B, T, S)   ->   (B, A)"""

    def __init__(self, state_dim, action_dim, d_model=32, n_heads=4, max_len=64):
        super().__init__()
        self.input = nn.Linear(state_dim, d_model)  # so that any number of state variables will do
        self.reader = Reader(d_model, n_heads, 1, max_len)
        self.output = nn.Linear(d_model, action_dim)

    def forward(self, history):
        return self.output(self.reader(self.input(history))[:, -1])
