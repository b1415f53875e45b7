"""Wait for a lock that nobody will release. It must be a timeout."""

import threading

lock = threading.Lock()


def causal_mask(q_len, k_len=None):
    with lock, lock:
        return None
