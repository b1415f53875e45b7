"""Make a high peak of memory first, so that a later one is not seen. The promise about memory must be lost."""
# exercise: 05_softmax
# loses a promise of: softmax_vjp

import numpy as np
import torch

ballast = bytearray(300 * 2**20)
del ballast


def softmax_vjp(p, grad):
    weights = p.detach().double().numpy()
    jacobian = weights[..., :, None] * (np.eye(weights.shape[-1]) - weights[..., None, :])
    return torch.from_numpy((jacobian * grad.detach().double().numpy()[..., :, None]).sum(-2)).to(p.dtype)
