"""Build the n × n Jacobian in NumPy, where PyTorch's counting sees nothing. The promise about memory must be lost."""
# exercise: 05_softmax
# loses a promise of: softmax_vjp

import numpy as np
import torch


def softmax_vjp(p, grad):
    weights, slope = p.detach().to(torch.float64).numpy(), grad.detach().to(torch.float64).numpy()
    jacobian = weights[..., :, None] * (np.eye(weights.shape[-1]) - weights[..., None, :])
    return torch.from_numpy((jacobian * slope[..., :, None]).sum(-2)).to(p.dtype)
