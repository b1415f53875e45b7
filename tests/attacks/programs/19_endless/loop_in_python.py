"""Loop for ever, in a cell and in a call. It must be a timeout."""

import torch


def causal_mask(q_len, k_len=None):
    while True:
        pass
