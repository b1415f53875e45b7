"""Index letters instead of transposes, and torch.where instead of filling."""

import torch


def mix(q, k, v, mask=None):
    scores = torch.einsum("...id,...jd->...ij", q, k) / q.shape[-1] ** 0.5
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    top = torch.where(mask, scores, -1e4).amax(-1, keepdim=True).detach()
    shares = torch.where(mask, torch.where(mask, scores - top, 0.0).exp(), 0.0)
    total = shares.sum(-1, keepdim=True)
    weights = shares / torch.where(total == 0, 1.0, total)
    return torch.einsum("...ij,...je->...ie", weights, v), weights


def dropped(weights, p, training):
    if not training or p == 0:
        return weights
    return weights * (torch.rand_like(weights) >= p) / max(1 - p, 1e-9)


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
    return mix(q, k, v)[0]


def repair_02(q, k, v, mask):
    return mix(q, k, v, mask)


def repair_03(q, k, v, lengths):
    mask = (torch.arange(k.shape[1], device=k.device) < lengths[:, None])[:, None]
    return mix(q, k, v, mask)[0]


def repair_04(q, k, v, mask):
    return mix(q, k, v, mask != 0)[0]


def repair_05(q, k, v):
    return mix(
        q,
        k,
        v,
        (
            torch.arange(k.shape[1], device=q.device)
            <= torch.arange(q.shape[1], device=q.device)[:, None] + k.shape[1] - q.shape[1]
        ),
    )[0]


def repair_06(q, k, v, mask, causal):
    if causal:
        mask = mask & (
            torch.arange(k.shape[1], device=q.device)
            <= torch.arange(q.shape[1], device=q.device)[:, None] + k.shape[1] - q.shape[1]
        )
    return mix(q, k, v, mask)[0]


def repair_07(q, k, v, mask):
    return mix(q, k, v, mask)[0]


def repair_08(q, k, v, p, training):
    weights = mix(q, k, v)[1]
    return dropped(weights, p, training) @ v, weights


def repair_09(q, k, v, p, training):
    weights = mix(q, k, v)[1]
    return dropped(weights, p, training) @ v


def repair_10(q, k, v, p, training):
    return repair_08(q, k, v, p, training)[0]


def repair_11(x, num_heads):
    return torch.stack(x.chunk(num_heads, -1), 1)


def repair_12(heads):
    return torch.cat(heads.transpose(0, 2).transpose(1, 2).unbind(2), -1)


def repair_13(x, num_heads):
    heads = repair_11(x.transpose(0, 1), num_heads)
    return repair_12(mix(heads, heads, heads)[0])


def repair_14(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError("the heads do not divide the width")
    return repair_11(x, num_heads)


def repair_15(q, k, v, mask):
    return mix(q, k, v, mask[:, None, :, :])[0]


def repair_16(q, k, v, mask):
    return repair_07(q, k, v, mask) if mask.ndim == 2 else repair_15(q, k, v, mask)


def repair_17(images, texts):
    return torch.einsum("nd,md->nm", images, texts / texts.norm(dim=1, keepdim=True)).argmax(1)


def repair_18(items):
    return mix(items[:, [-1]], items, items)[0].squeeze(1)
