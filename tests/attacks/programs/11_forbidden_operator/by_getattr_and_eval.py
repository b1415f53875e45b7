"""Spell the name so that no search for it finds it: getattr, eval, importlib. It must earn nothing."""

import importlib

import torch

name = "_".join(["scaled", "dot", "product", "attention"])
first = getattr(importlib.import_module("torch.nn.functional"), name)
second = eval("torch._C._nn." + name)


def masked_attention(q, k, v, mask):
    eye = torch.eye(k.shape[-2], dtype=q.dtype)
    return first(q, k, v, attn_mask=mask).nan_to_num(), second(q, k, eye, attn_mask=mask).nan_to_num()
