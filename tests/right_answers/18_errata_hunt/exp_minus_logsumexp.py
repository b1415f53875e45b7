"""The softmax as exp(x − logsumexp(x)), in float64 inside; permutations written out."""

import torch
import torch.nn.functional as F


def look(q, k, v, mask=None):
    dtype, (q, k, v) = q.dtype, (x.double() for x in (q, k, v))
    scores = (q / q.shape[-1] ** 0.25) @ (k / k.shape[-1] ** 0.25).transpose(-1, -2)
    if mask is not None:
        blind = ~mask.any(-1, keepdim=True)
        scores = scores.masked_fill(~(mask | blind), -torch.inf)
    weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    if mask is not None:
        weights = weights.masked_fill(blind, 0.0)
    return (weights @ v).to(dtype), weights.to(dtype)


def sample(*lead, lq=3, lk=5, d=4, e=6):
    torch.manual_seed(0)
    return {"q": torch.rand(*lead, lq, d), "k": torch.rand(*lead, lk, d).double(), "v": torch.rand(*lead, lk, e)}


def ladder(*shape):
    mask = torch.ones(*shape, dtype=torch.bool)
    mask[..., 0, 1:] = False
    return mask


def break_01():
    return sample(5, lk=5, d=5)


def break_02():
    return {**sample(2), "mask": torch.ones(2, 3, 5).tril(-1) > 0}


def break_03():
    return {**sample(3), "lengths": torch.arange(3)}


def break_04():
    return {**sample(2), "mask": torch.zeros(3, 5).double().index_fill(1, torch.tensor([2]), 1.0)}


def break_05():
    return sample(1, lq=2, lk=3)


def break_06():
    return {**sample(2), "mask": ladder(3, 5), "causal": True}


def break_07():
    return {**sample(2, 7), "mask": ladder(2, 7, 3, 5)}


def break_08():
    return {**sample(), "p": 0.3, "training": True}


def break_09():
    return {**sample(2), "p": 1.0, "training": False}


def break_10():
    return {**sample(2), "p": 1, "training": True}


def break_11():
    return {"x": torch.arange(60.0).reshape(1, 5, 12), "num_heads": 12}


def break_12():
    return {"heads": torch.arange(16.0).reshape(2, 2, 2, 2)}


def break_13():
    return {"x": torch.linspace(0, 1, 24).reshape(3, 2, 4), "num_heads": 2}


def break_14():
    return {"x": torch.rand(1, 3, 4), "num_heads": 3}


def break_15():
    mask = torch.stack([ladder(3, 5), ~ladder(3, 5) | (torch.arange(3) > 0)[:, None]])
    return {**sample(2, 2), "mask": mask}


def break_16():
    return {**sample(2, 3), "mask": ladder(3, 5)}


def break_17():
    return {"images": torch.eye(3), "texts": torch.tensor([[0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [50.0, 50.0, 90.0]])}


def break_18():
    return {"items": torch.rand(4, 3, 5)}


def repair_01(q, k, v):
    return look(q, k, v)[0]


def repair_02(q, k, v, mask):
    return look(q, k, v, mask)


def repair_03(q, k, v, lengths):
    mask = torch.arange(k.shape[-2], device=k.device).expand(*q.shape[:-1], -1) < lengths.view(-1, 1, 1)
    return look(q, k, v, mask)[0]


def repair_04(q, k, v, mask):
    return look(q, k, v, mask.to(torch.bool))[0]


def repair_05(q, k, v):
    return look(
        q,
        k,
        v,
        (torch.ones(k.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(q.shape[-2] - k.shape[-2]).T),
    )[0]


def repair_06(q, k, v, mask, causal):
    if causal:
        mask = mask & (
            torch.ones(k.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(q.shape[-2] - k.shape[-2]).T
        )
    return look(q, k, v, mask)[0]


def repair_07(q, k, v, mask):
    return look(q, k, v, mask)[0]


def repair_08(q, k, v, p, training):
    weights = look(q, k, v)[1]
    return F.dropout(weights, p if training else 0.0) @ v, weights


def repair_09(q, k, v, p, training):
    weights = look(q, k, v)[1]
    return F.dropout(weights, p if training else 0.0) @ v


def repair_10(q, k, v, p, training):
    return repair_08(q, k, v, p, training)[0]


def repair_11(x, num_heads):
    return x.transpose(1, 2).unflatten(1, (num_heads, -1)).transpose(2, 3)


def repair_12(heads):
    return heads.permute(2, 0, 1, 3).reshape(*heads.permute(2, 0, 1, 3).shape[:2], -1)


def repair_13(x, num_heads):
    heads = repair_11(x.transpose(0, 1), num_heads)
    return repair_12(look(heads, heads, heads)[0])


def repair_14(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError("the heads do not divide the width")
    return repair_11(x, num_heads)


def repair_15(q, k, v, mask):
    return look(q, k, v, mask[:, None])[0]


def repair_16(q, k, v, mask):
    return repair_07(q, k, v, mask) if mask.ndim == 2 else repair_15(q, k, v, mask)


def repair_17(images, texts):
    return (F.normalize(images, p=2, dim=1) @ F.normalize(texts, p=2, dim=1).t()).argmax(dim=1)


def repair_18(items):
    return look(items, items, items)[0].transpose(0, 1)[-1]
