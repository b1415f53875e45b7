"""Let PyTorch's fused attention do the exercise. However right it is, that must earn nothing."""

import torch
import torch.nn.functional as F


def masked_attention(q, k, v, mask):
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    weights = F.scaled_dot_product_attention(q, k, torch.eye(k.shape[-2], dtype=q.dtype), attn_mask=mask)
    return out.nan_to_num(), weights.nan_to_num()
