"""Chapter 18: eighteen pieces of code put right, and for each an input on which the wrong one fails.

Every `repair_NN` is the right code; every `break_NN` returns the arguments of `repair_NN` by name.
"""

import torch
import torch.nn.functional as F


def attend(q, k, v, allowed=None):
    """Attention over the last two axes; a query that may look nowhere gets zeros.   ->   (..., Lq, e), (..., Lq, Lk)"""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if allowed is None:
        weights = torch.softmax(scores, -1)
    else:
        somewhere = allowed.any(-1, keepdim=True)
        scores = scores.masked_fill(~allowed & somewhere, -torch.inf)  # an empty row stays finite: no NaN gradient
        weights = torch.softmax(scores, -1).masked_fill(~allowed, 0.0)
    return weights @ v, weights


def numbers(*shape, seed=0):
    """The same normal numbers at every call."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def qkv(*lead, lq=3, lk=5, d=4, e=6):
    """Sizes that are all different, unless a bug needs two of them equal."""
    return {"q": numbers(*lead, lq, d, seed=1), "k": numbers(*lead, lk, d, seed=2), "v": numbers(*lead, lk, e, seed=3)}


def break_01():
    """B = Lk = d: the exchanged axes fit."""
    return qkv(4, lq=3, lk=4, d=4)


def repair_01(q, k, v):
    """Plain attention with any leading axes.   q (..., Lq, d)   k (..., Lk, d)   v (..., Lk, e)   ->   (..., Lq, e)"""
    return attend(q, k, v)[0]


def break_02():
    """One query that may look nowhere."""
    mask = torch.ones(2, 3, 5, dtype=torch.bool)
    mask[1, 2] = False
    return {**qkv(2), "mask": mask}


def repair_02(q, k, v, mask):
    """Masked attention, True = may look.   mask (B, Lq, Lk) bool   ->   (B, Lq, e), (B, Lq, Lk)"""
    return attend(q, k, v, mask)


def break_03():
    """One sequence without a single token."""
    return {**qkv(2), "lengths": torch.tensor([4, 0])}


def repair_03(q, k, v, lengths):
    """Attention over the first `lengths[b]` keys of sequence b.   ->   (B, Lq, e)"""
    real = torch.arange(k.shape[-2], device=k.device) < lengths[:, None, None]
    return attend(q, k, v, real.expand(*q.shape[:-1], -1))[0]


def break_04():
    """A mask that forbids something."""
    return {**qkv(2, lq=5), "mask": torch.ones(5, 5).tril()}


def repair_04(q, k, v, mask):
    """Attention under a mask of 1 = keep and 0 = drop, of any dtype.   mask (Lq, Lk)   ->   (B, Lq, e)"""
    return attend(q, k, v, mask != 0)[0]


def break_05():
    """One new query and five keys."""
    return qkv(2, lq=1)


def repair_05(q, k, v):
    """Causal attention of the last Lq of Lk positions, aligned to the lower right.   ->   (B, Lq, e)"""
    past = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril(k.shape[-2] - q.shape[-2])
    return attend(q, k, v, past)[0]


def break_06():
    """Causal, and a key of the past is forbidden."""
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[:, 0] = False
    return {**qkv(2), "mask": mask, "causal": True}


def repair_06(q, k, v, mask, causal):
    """Attention where the mask allows it and, when causal, time does too.   mask (Lq, Lk) bool   ->   (B, Lq, e)"""
    if causal:
        mask = mask & torch.ones_like(mask).tril(mask.shape[-1] - mask.shape[-2])
    return attend(q, k, v, mask)[0]


def break_07():
    """A mask of its own for each sequence."""
    mask = torch.ones(2, 1, 3, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    return {**qkv(2, 7), "mask": mask}


def repair_07(q, k, v, mask):
    """Attention in heads under any bool mask that broadcasts to (B, H, Lq, Lk).   ->   (B, H, Lq, e)"""
    return attend(q, k, v, mask)[0]


def break_08():
    """Training, with something to drop."""
    return {**qkv(), "p": 0.5, "training": True}


def repair_08(q, k, v, p, training):
    """Attention with dropout on its weights, which are returned as they were before.   ->   (Lq, e), (Lq, Lk)"""
    _, weights = attend(q, k, v)
    return F.dropout(weights, p, training) @ v, weights


def break_09():
    """Not training, with something to drop."""
    return {**qkv(2), "p": 0.5, "training": False}


def repair_09(q, k, v, p, training):
    """Attention with dropout on its weights, in training only.   ->   (B, Lq, e)"""
    return F.scaled_dot_product_attention(q, k, v, dropout_p=p if training else 0.0)


def break_10():
    """Training without dropout."""
    return {**qkv(2), "p": 0.0, "training": True}


def repair_10(q, k, v, p, training):
    """The same, with the rate that was asked for.   ->   (B, Lq, e)"""
    _, weights = attend(q, k, v)
    return F.dropout(weights, p, training) @ v


def break_11():
    """More than one head and more than one token."""
    return {"x": numbers(2, 5, 12), "num_heads": 3}


def repair_11(x, num_heads):
    """Give each head its own slice of the features.   x (B, L, E)   ->   (B, H, L, E/H)"""
    batch, length, width = x.shape
    return x.reshape(batch, length, num_heads, width // num_heads).transpose(1, 2)


def break_12():
    """All sizes different."""
    return {"heads": numbers(2, 3, 5, 4)}


def repair_12(heads):
    """Put the heads of each token side by side, time first.   heads (B, H, T, D)   ->   (T, B, H·D)"""
    return heads.permute(2, 0, 1, 3).flatten(2)


def break_13():
    """More than one token."""
    return {"x": numbers(5, 2, 12), "num_heads": 3}


def repair_13(x, num_heads):
    """Self-attention in heads, without projections, time first.   x (T, B, E)   ->   (T, B, E)"""
    length, batch, width = x.shape
    heads = x.reshape(length, batch, num_heads, width // num_heads).permute(1, 2, 0, 3)
    return attend(heads, heads, heads)[0].permute(2, 0, 1, 3).flatten(2)


def break_14():
    """Nine tokens of width 10 are ten tokens of width 9."""
    return {"x": numbers(2, 9, 10), "num_heads": 3}


def repair_14(x, num_heads):
    """Split into heads; heads that do not divide the width raise ValueError.   x (B, L, E)   ->   (B, H, L, E/H)"""
    if x.shape[-1] % num_heads:
        raise ValueError(f"{num_heads} heads do not divide a width of {x.shape[-1]}")
    return repair_11(x, num_heads)


def break_15():
    """As many sequences as heads."""
    mask = torch.ones(2, 3, 5, dtype=torch.bool)
    mask[1, :, 3:] = False
    return {**qkv(2, 2), "mask": mask}


def repair_15(q, k, v, mask):
    """Attention in heads with one mask a sequence.   q (B, H, Lq, d)   mask (B, Lq, Lk) bool   ->   (B, H, Lq, e)"""
    return attend(q, k, v, mask[:, None])[0]


def break_16():
    """As many queries as heads, and one mask for all."""
    return {**qkv(2, 5, lq=5), "mask": torch.ones(5, 5, dtype=torch.bool).tril()}


def repair_16(q, k, v, mask):
    """The same, and a mask (Lq, Lk) serves all sequences.   ->   (B, H, Lq, e)"""
    return attend(q, k, v, mask if mask.dim() == 2 else mask[:, None])[0]


def break_17():
    """A caption that points the right way and is short, and one that is long."""
    return {
        "images": torch.tensor([[1.0, 0.1]], dtype=torch.float64),
        "texts": torch.tensor([[1.0, 0.0], [9.0, 9.0]], dtype=torch.float64),
    }


def repair_17(images, texts):
    """The caption whose direction is nearest to each image's.   images (N, d)   texts (M, d)   ->   (N,) integer"""
    return (F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T).argmax(-1)


def break_18():
    """Several users with several items each."""
    return {"items": numbers(2, 5, 4)}


def repair_18(items):
    """What the last item of each user reads in that user's own history.   items (B, T, E)   ->   (B, E)"""
    return attend(items[:, -1:], items, items)[0][:, 0]
