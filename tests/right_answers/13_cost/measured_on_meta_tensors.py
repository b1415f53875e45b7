"""Nothing is worked out: modules and tensors without memory are built and counted."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def attention_flops(batch, length, d_model):
    x = torch.empty(batch, length, d_model, device="meta")
    w = torch.empty(4, d_model, d_model, device="meta")
    with FlopCounterMode(display=False) as counter:
        weights = torch.softmax((x @ w[0]) @ (x @ w[1]).mT, -1)
        weights @ (x @ w[2]) @ w[3]
    return counter.get_total_flops()


def block_parameters(d_model, d_ff):
    block = nn.TransformerEncoderLayer(d_model, 1, d_ff, device="meta")
    return sum(p.numel() for p in block.parameters())


def kv_cache_bytes(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return torch.empty(2, layers, batch, kv_heads, length, head_dim, bytes_per_value, device="meta").numel()


def attention_matrix_bytes(batch, heads, length, bytes_per_value=4):
    return torch.empty(batch, heads, length, length, device="meta", dtype=torch.int8).nbytes * bytes_per_value
