"""Stop itself and never go on. It must be a timeout."""

import os
import signal


def causal_mask(q_len, k_len=None):
    os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        pass
