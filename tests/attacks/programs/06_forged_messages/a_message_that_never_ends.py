"""Begin a message and keep the line busy for ever, byte by byte. It must run into its time limit."""

import os
import struct
import time


def causal_mask(q_len, k_len=None):
    for number in range(3, 64):
        try:
            os.write(number, struct.pack(">II", 2**20, 0))
            while True:
                os.write(number, b" ")
                time.sleep(0.05)
        except OSError:
            pass
