"""Ignore every signal that can be ignored, then sleep. It must be a timeout."""

import signal
import time


def causal_mask(q_len, k_len=None):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        time.sleep(1000)
