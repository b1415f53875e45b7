"""Leading axes flattened into one; an in-place state where no gradient is wanted."""

import torch
import torch.nn.functional as fun


def flat(x):
    return x.reshape(-1, *x.shape[-2:])


def batched(a, b, v, causal):
    lead = v.shape[:-2]
    a, b, v = flat(a), flat(b), flat(v)
    if causal:
        n, d, e = v.shape[1], b.shape[2], v.shape[2]
        outer = torch.bmm(b.reshape(-1, d, 1), v.reshape(-1, 1, e)).reshape(-1, n, d * e)
        states = outer.cumsum(1).reshape(-1, d, e)
        top = torch.bmm(a.reshape(-1, 1, d), states).reshape(-1, n, e)
        low = torch.bmm(a.reshape(-1, 1, d), b.cumsum(1).reshape(-1, d, 1)).reshape(-1, n, 1)
    else:
        top = torch.bmm(a, torch.bmm(b.transpose(1, 2), v))
        low = torch.bmm(a, b.sum(1).unsqueeze(2))
    return (top / low).reshape(*lead, *top.shape[1:])


def linear_attention(q, k, v, causal=False):
    return batched(1 + fun.elu(q), 1 + fun.elu(k), v, causal)


def linear_attention_recurrent(q, k, v):
    a, b = 1 + fun.elu(q), 1 + fun.elu(k)
    state = v.new_zeros(*v.shape[:-2], k.shape[-1], v.shape[-1])
    norm = v.new_zeros(*v.shape[:-2], k.shape[-1], 1)
    train = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    rows = []
    for t in range(v.shape[-2]):
        key = b[..., t, :].unsqueeze(-1)
        if train:
            state, norm = state + key @ v[..., t : t + 1, :], norm + key
        else:
            state += key @ v[..., t : t + 1, :]
            norm += key
        rows.append((a[..., t : t + 1, :] @ state) / (a[..., t : t + 1, :] @ norm))
    return torch.cat(rows, -2)


def favor_features(x, W):
    squares = torch.sum(torch.square(x), dim=-1, keepdim=True)
    return torch.exp(torch.matmul(x, W.t()) - 0.5 * squares).div(W.size(0) ** 0.5)


def performer(q, k, v, W, causal=False):
    root = float(q.size(-1)) ** 0.25
    return batched(favor_features(q / root, W), favor_features(k / root, W), v, causal)


def linformer(q, k, v, E, F):
    keys = (k.mT @ E.mT).mT
    values = (v.mT @ F.mT).mT
    return torch.softmax((q / q.shape[-1] ** 0.5) @ keys.mT, -1) @ values
