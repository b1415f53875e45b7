"""End the process in the middle of a call, with a status that means success. It must earn nothing."""

import os


def causal_mask(q_len, k_len=None):
    os._exit(0)


def masked_attention(q, k, v, mask):
    os._exit(0)
