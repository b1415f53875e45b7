"""The sharpness is in the keys, the permutation is a matrix product, and collapse uses the centring matrix."""

import torch


def log_weight_rank(q, k, tolerance=1e-9):
    logs = torch.nn.LogSoftmax(dim=-1)((q.double() / q.shape[-1] ** 0.25) @ (k.double() / k.shape[-1] ** 0.25).T)
    largest = torch.linalg.matrix_norm(logs, ord=2)
    return int(torch.linalg.matrix_rank(logs, atol=float(tolerance * largest), rtol=0.0))


def permutation_head(perm, sharpness=1e3):
    n = perm.shape[0]
    table = torch.zeros(n, n, device=perm.device).scatter_(1, perm[:, None], 1.0)
    eye = torch.eye(n, device=perm.device)
    return table @ eye, eye * sharpness


def previous_token_head(length, sharpness=1e3):
    table = torch.diag(torch.ones(length - 1), -1)
    table[0, 0] = 1.0
    return table, sharpness * torch.eye(length)


def rank_collapse(x, depth, skip):
    n, d = x.shape
    centre = torch.eye(n, dtype=x.dtype, device=x.device) - 1 / n
    distances = [(centre @ x).norm() / x.norm()]
    for _ in range(depth):
        mix = torch.softmax(x @ x.T * d**-0.5, -1)
        if skip:
            mix = mix + torch.eye(n, dtype=x.dtype, device=x.device)
        x = mix @ x
        distances.append((centre @ x).norm() / x.norm())
    return torch.stack(distances)
