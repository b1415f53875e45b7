"""Recurse without end, with the recursion limit raised. It must cost only itself."""

import sys

sys.setrecursionlimit(2**30)


def causal_mask(q_len, k_len=None):
    return causal_mask(q_len, k_len)
