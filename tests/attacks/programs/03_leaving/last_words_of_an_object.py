"""Exit from a destructor that runs while the answer is on its way. It must earn nothing."""

import os


class Bomb:
    def __del__(self):
        os._exit(0)


def causal_mask(q_len, k_len=None):
    Bomb()
    return None
