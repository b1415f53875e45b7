"""The smallest finite number instead of −inf, with the empty rows multiplied away."""

import math

import torch
import torch.nn.functional as F


def attention(q, k, v, keep=None):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    if keep is None:
        weights = F.softmax(scores, dim=-1)
    else:
        weights = F.softmax(scores.masked_fill(keep.logical_not(), torch.finfo(scores.dtype).min), dim=-1) * keep
    return torch.matmul(weights, v), weights


def break_01():
    return torch.randn(3, 2, 3), torch.randn(3, 3, 3), torch.randn(3, 3, 5)


def break_02():
    return torch.randn(1, 2, 3), torch.randn(1, 4, 3), torch.randn(1, 4, 5), torch.zeros(1, 2, 4, dtype=torch.bool)


def break_03():
    return torch.randn(1, 2, 3), torch.randn(1, 4, 3), torch.randn(1, 4, 5), torch.tensor([0], dtype=torch.int32)


def break_04():
    return torch.randn(2, 2, 3), torch.randn(2, 4, 3), torch.randn(2, 4, 5), torch.eye(2, 4)


def break_05():
    return torch.randn(2, 3, 4), torch.randn(2, 7, 4), torch.randn(2, 7, 5)


def break_06():
    return *break_05(), torch.eye(3, 7).bool(), True


def break_07():
    q, k, v = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5), torch.randn(2, 3, 6, 7)
    return q, k, v, torch.ones(1, 1, 4, 6, dtype=torch.bool)


def break_08():
    return torch.randn(6, 4), torch.randn(9, 4), torch.randn(9, 5), 1, True


def break_09():
    return *break_05(), 0.9, False


def break_10():
    return *break_05(), 0.8, True


def break_11():
    return torch.randn(1, 2, 4), 2


def break_12():
    return (torch.randn(1, 2, 3, 1),)


def break_13():
    return torch.randn(2, 1, 4), 1


def break_14():
    return torch.randn(1, 4, 5), 2


def break_15():
    q, k, v = torch.randn(3, 3, 2, 5), torch.randn(3, 3, 3, 5), torch.randn(3, 3, 3, 7)
    return q, k, v, torch.eye(3).bool()[:, None].expand(3, 2, 3).clone()


def break_16():
    return torch.randn(1, 3, 3, 5), torch.randn(1, 3, 4, 5), torch.randn(1, 3, 4, 7), torch.eye(3, 4).bool()


def break_17():
    return torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.5, 0.1]])


def break_18():
    return (torch.randn(3, 1, 2),)


def repair_01(q, k, v):
    return attention(q, k, v)[0]


def repair_02(q, k, v, mask):
    return attention(q, k, v, mask)


def repair_03(q, k, v, lengths):
    mask = (torch.ones_like(k[..., 0], dtype=torch.long).cumsum(-1) <= lengths[:, None])[:, None]
    return attention(q, k, v, mask)[0]


def repair_04(q, k, v, mask):
    return attention(q, k, v, mask.ne(0))[0]


def repair_05(q, k, v):
    return attention(
        q, k, v, torch.full((q.size(-2), k.size(-2)), True, device=q.device).tril(k.size(-2) - q.size(-2))
    )[0]


def repair_06(q, k, v, mask, causal):
    if causal:
        mask = mask & torch.full((q.size(-2), k.size(-2)), True, device=q.device).tril(k.size(-2) - q.size(-2))
    return attention(q, k, v, mask)[0]


def repair_07(q, k, v, mask):
    return attention(q, k, v, mask)[0]


def repair_08(q, k, v, p, training):
    weights = attention(q, k, v)[1]
    return (F.dropout(weights, p=p) if training else weights) @ v, weights


def repair_09(q, k, v, p, training):
    weights = attention(q, k, v)[1]
    return (F.dropout(weights, p=p) if training else weights) @ v


def repair_10(q, k, v, p, training):
    return repair_08(q, k, v, p, training)[0]


def repair_11(x, num_heads):
    return x.reshape(x.size(0), x.size(1), num_heads, -1).movedim(2, 1)


def repair_12(heads):
    return heads.movedim(2, 0).reshape(heads.size(2), heads.size(0), -1)


def repair_13(x, num_heads):
    heads = repair_11(x.transpose(0, 1), num_heads)
    return repair_12(attention(heads, heads, heads)[0])


def repair_14(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError("the heads do not divide the width")
    return repair_11(x, num_heads)


def repair_15(q, k, v, mask):
    return attention(q, k, v, mask.unsqueeze(-3))[0]


def repair_16(q, k, v, mask):
    return repair_07(q, k, v, mask) if mask.ndim == 2 else repair_15(q, k, v, mask)


def repair_17(images, texts):
    return (images @ (texts * texts.square().sum(-1, keepdim=True).rsqrt()).T).max(-1).indices


def repair_18(items):
    return attention(items[:, -1, None], items, items)[0].flatten(1)
