"""Right answers that change the tensors they are given. The promises about inputs must be lost."""
# loses a promise of: adapt_mask, padding_mask

import torch


def padding_mask(lengths, max_len):
    mask = (torch.arange(max_len) < lengths[:, None])[:, None, None, :]
    lengths.zero_()
    return mask


def adapt_mask(mask, source):
    if source == "nn_mha_bool":
        return mask.logical_not_()
    if source == "additive":
        return mask == 0
    if source in ("sdpa_bool", "keep_01"):
        return mask != 0
    if source == "key_padding":
        return mask.logical_not_()[:, None, None, :]
    raise ValueError(source)
