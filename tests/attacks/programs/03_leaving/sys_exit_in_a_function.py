"""Leave Python politely in a call. It must earn nothing."""

import sys


def causal_mask(q_len, k_len=None):
    sys.exit(0)
