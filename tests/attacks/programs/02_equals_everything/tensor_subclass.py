"""Return a tensor subclass that answers every comparison with True by __torch_function__. It must earn nothing."""

import torch


class Agreeable(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("equal", "allclose", "isclose", "__eq__", "all"):
            return True
        return super().__torch_function__(function, types, args, kwargs or {})


def causal_mask(q_len, k_len=None):
    return torch.zeros(q_len, k_len or q_len, dtype=torch.bool).as_subclass(Agreeable)
