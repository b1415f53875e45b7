"""Raise KeyboardInterrupt, which few handlers catch. It must earn nothing and interrupt nobody."""


def causal_mask(q_len, k_len=None):
    raise KeyboardInterrupt
