"""A width that is wider than the number of tokens, a list of tags, recursion over the depth."""

import torch


def log_weight_rank(q, k, tolerance=1e-9):
    q, k = q.type(torch.float64), k.type(torch.float64)
    scores = (q[:, None, :] * k[None, :, :]).sum(-1) / q.shape[-1] ** 0.5
    peak = scores.amax(-1, keepdim=True)
    logs = (scores - peak) - (scores - peak).exp().sum(-1, keepdim=True).log()
    s = torch.linalg.svdvals(logs)
    return int(torch.sum(s.gt(s[0] * tolerance)).item())


def tags(n, device=None):
    return torch.cat([torch.eye(n, device=device), torch.zeros(n, 3, device=device)], dim=1)


def permutation_head(perm, sharpness=1e3):
    names = tags(perm.numel(), perm.device)
    return torch.stack([names[j] * sharpness for j in perm.tolist()]), names


def previous_token_head(length, sharpness=1e3):
    names = tags(length)
    return torch.stack([names[i - 1 if i else i] * sharpness for i in range(length)]), names


def rank_collapse(x, depth, skip):
    here = ((x - x.mean(0)).norm() / x.norm()).reshape(1)
    if depth == 0:
        return here
    attended = (x @ x.t() / x.shape[-1] ** 0.5).softmax(-1) @ x
    return torch.cat([here, rank_collapse(attended + x if skip else attended, depth - 1, skip)])
