"""Be just fast enough for each call, many times over. The time of the whole sitting must end it."""

import time

import torch


def masked_attention(q, k, v, mask):
    time.sleep(1.2)
    raise ValueError("slowly wrong")
