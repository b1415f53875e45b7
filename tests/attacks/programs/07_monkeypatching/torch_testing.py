"""Empty torch.testing.assert_close and NumPy's assertions. It must earn nothing."""

import numpy
import torch

torch.testing.assert_close = lambda *args, **kwargs: None
for name in dir(numpy.testing):
    if name.startswith("assert"):
        setattr(numpy.testing, name, lambda *args, **kwargs: None)


def to_additive(mask, dtype=torch.float32):
    return torch.ones(mask.shape, dtype=dtype)
