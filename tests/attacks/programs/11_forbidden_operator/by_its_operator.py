"""Call the operator below the function, torch.ops.aten. It must earn nothing."""

import torch

fused = torch.ops.aten.scaled_dot_product_attention


def masked_attention(q, k, v, mask):
    eye = torch.eye(k.shape[-2], dtype=q.dtype).expand(*k.shape[:-1], k.shape[-2])
    return fused(q, k, v, mask).nan_to_num(), fused(q, k, eye, mask).nan_to_num()
