"""Answers of a smaller shape that would broadcast to a right one. It must earn nothing."""

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len) < lengths[:, None]


def to_additive(mask, dtype=torch.float32):
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -torch.inf)[None]
