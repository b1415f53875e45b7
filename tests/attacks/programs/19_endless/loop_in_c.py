"""Stay in one call of C that checks no signal. It must be a timeout."""

import re


def causal_mask(q_len, k_len=None):
    return re.match(r"(a+)+$", "a" * 64 + "b")
