"""Everything one number at a time."""

import math

import torch


def log_weight_rank(q, k, tolerance=1e-9):
    rows = []
    for i in range(len(q)):
        scores = [float((q[i].double() * k[j].double()).sum()) / math.sqrt(q.shape[1]) for j in range(len(k))]
        top = max(scores)
        normaliser = top + math.log(sum(math.exp(s - top) for s in scores))
        rows.append([s - normaliser for s in scores])
    values = torch.linalg.svdvals(torch.tensor(rows, dtype=torch.float64)).tolist()
    return sum(value > tolerance * values[0] for value in values)


def permutation_head(perm, sharpness=1e3):
    n = len(perm)
    q = torch.zeros(n, n, dtype=torch.float64, device=perm.device)
    k = torch.zeros(n, n, dtype=torch.float64, device=perm.device)
    for i in range(n):
        q[i, int(perm[i])] = sharpness * math.sqrt(n)
        k[i, i] = 1.0
    return q, k


def previous_token_head(length, sharpness=1e3):
    q, k = torch.zeros(length, length), torch.zeros(length, length)
    for i in range(length):
        q[i, i - 1 if i > 0 else 0] = sharpness
        k[i, i] = 1
    return q, k


def rank_collapse(x, depth, skip):
    def unlike(y):
        mean = sum(y) / len(y)
        return math.sqrt(sum(float(((row - mean) ** 2).sum()) for row in y) / sum(float((row**2).sum()) for row in y))

    y = x.double()
    numbers = [unlike(y)]
    for _ in range(depth):
        rows = []
        for i in range(len(y)):
            scores = torch.stack([(y[i] * y[j]).sum() / math.sqrt(y.shape[1]) for j in range(len(y))])
            weights = (scores - scores.max()).exp()
            weights = weights / weights.sum()
            new = sum(weights[j] * y[j] for j in range(len(y)))
            rows.append(new + y[i] if skip else new)
        y = torch.stack(rows)
        numbers.append(unlike(y))
    return torch.tensor(numbers, dtype=x.dtype, device=x.device)
