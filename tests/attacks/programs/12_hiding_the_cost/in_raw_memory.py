"""Keep n × n numbers in memory that neither PyTorch nor Python counts. The promise about memory must be lost."""
# exercise: 05_softmax
# loses a promise of: softmax_vjp

import ctypes


def softmax_vjp(p, grad):
    n = p.shape[-1]
    table = (ctypes.c_double * n**2)()
    ctypes.memset(table, 1, 8 * n**2)
    return p * (grad - (p * grad).sum(-1, keepdim=True))
