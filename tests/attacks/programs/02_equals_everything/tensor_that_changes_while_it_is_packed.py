"""A plain tensor whose class is swapped by a thread while the answer is packed. Whatever crosses is compared as data."""

import threading

import torch

mask = torch.zeros(3, 3, dtype=torch.bool)


def flip():
    for _ in range(100_000):
        mask.logical_not_()


def causal_mask(q_len, k_len=None):
    threading.Thread(target=flip, daemon=True).start()
    return mask
