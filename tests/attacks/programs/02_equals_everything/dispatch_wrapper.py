"""Return a wrapper tensor that makes up its content when somebody looks (__torch_dispatch__). It must earn nothing."""

import torch


class Chameleon(torch.Tensor):
    @staticmethod
    def __new__(cls, shape, dtype):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return True


def causal_mask(q_len, k_len=None):
    return Chameleon((q_len, k_len or q_len), torch.bool)
