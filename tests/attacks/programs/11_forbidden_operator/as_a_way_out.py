"""Call it only where it works, and fall back to honest code where it raises. It must earn nothing."""

import torch
import torch.nn.functional as F


def masked_attention(q, k, v, mask):
    weights = torch.softmax((q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf), -1).nan_to_num()
    try:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).nan_to_num(), weights
    except RuntimeError:
        return weights @ v, weights
