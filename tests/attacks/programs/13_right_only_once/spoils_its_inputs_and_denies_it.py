"""Change the inputs, and replace torch.equal, clone and detach so that no change is seen. The promise must be lost."""
# loses a promise of: padding_mask

import torch

torch.equal = torch.Tensor.equal = lambda *args: True
torch.Tensor.clone = torch.Tensor.detach = lambda self, *args, **kwargs: self


def padding_mask(lengths, max_len):
    mask = (torch.arange(max_len) < lengths[:, None])[:, None, None, :]
    lengths.zero_()
    return mask
