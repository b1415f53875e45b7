"""The fused attention of PyTorch for the layers, float64 inside, and a random orthonormal frame for the positions."""

import torch
import torch.nn.functional as F


def log_weight_rank(q, k, tolerance=1e-9):
    with torch.no_grad():
        scores = torch.matmul(q.double(), k.double().transpose(0, 1)).mul(q.shape[1] ** -0.5)
        logs = scores.log_softmax(1)
        values = torch.linalg.svdvals(logs.T)
        return len(values[values > values.max() * tolerance])


def frame(n):
    generator = torch.Generator().manual_seed(12)
    return torch.linalg.qr(torch.randn(n, n, dtype=torch.float64, generator=generator)).Q


def permutation_head(perm, sharpness=1e3):
    k = frame(len(perm)).to(perm.device)
    return k.index_select(0, perm) * sharpness, k


def previous_token_head(length, sharpness=1e3):
    k = frame(length)
    return sharpness * torch.cat([k[:1], k[:-1]]), k


def rank_collapse(x, depth, skip):
    y = x.double()
    states = [y]
    for _ in range(depth):
        attended = F.scaled_dot_product_attention(y[None], y[None], y[None])[0]
        y = torch.add(attended, y) if skip else attended
        states.append(y)
    stack = torch.stack(states)
    apart = stack - stack.mean(dim=1, keepdim=True)
    return (apart.flatten(1).norm(dim=1) / stack.flatten(1).norm(dim=1)).to(x.dtype)
