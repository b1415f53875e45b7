"""Fill with −inf, take the softmax, turn NaN into 0; inputs as tuples."""

import torch
import torch.nn.functional as F


def attend(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1).nan_to_num(0.0)
    return weights @ v, weights


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
    return attend(q, k, v)[0]


def repair_02(q, k, v, mask):
    return attend(q, k, v, mask)


def repair_03(q, k, v, lengths):
    mask = torch.arange(k.shape[1], device=k.device)[None, None] < lengths[:, None, None]
    return attend(q, k, v, mask)[0]


def repair_04(q, k, v, mask):
    return attend(q, k, v, mask.bool())[0]


def repair_05(q, k, v):
    return attend(
        q, k, v, torch.ones(q.shape[-2], k.shape[-2], device=q.device).tril(k.shape[-2] - q.shape[-2]).bool()
    )[0]


def repair_06(q, k, v, mask, causal):
    if causal:
        mask = mask & torch.ones(q.shape[-2], k.shape[-2], device=q.device).tril(k.shape[-2] - q.shape[-2]).bool()
    return attend(q, k, v, mask)[0]


def repair_07(q, k, v, mask):
    return attend(q, k, v, mask)[0]


def repair_08(q, k, v, p, training):
    weights = attend(q, k, v)[1]
    return F.dropout(weights, p, training) @ v, weights


def repair_09(q, k, v, p, training):
    weights = attend(q, k, v)[1]
    return F.dropout(weights, p, training) @ v


def repair_10(q, k, v, p, training):
    return repair_08(q, k, v, p, training)[0]


def repair_11(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def repair_12(heads):
    return heads.permute(2, 0, 1, 3).flatten(2)


def repair_13(x, num_heads):
    heads = repair_11(x.transpose(0, 1), num_heads)
    return repair_12(attend(heads, heads, heads)[0])


def repair_14(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError("the heads do not divide the width")
    return repair_11(x, num_heads)


def repair_15(q, k, v, mask):
    return attend(q, k, v, mask.unsqueeze(1))[0]


def repair_16(q, k, v, mask):
    return repair_07(q, k, v, mask) if mask.ndim == 2 else repair_15(q, k, v, mask)


def repair_17(images, texts):
    return F.cosine_similarity(images[:, None], texts[None], dim=-1).argmax(1)


def repair_18(items):
    return attend(items, items, items)[0][:, -1]
