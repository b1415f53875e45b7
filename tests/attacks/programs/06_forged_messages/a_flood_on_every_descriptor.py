"""Flood every descriptor it inherited with nonsense that claims to be long. It must earn nothing and hang nobody."""

import os
import struct

for number in range(3, 256):
    try:
        os.write(number, struct.pack(">II", 2**25, 2**25))
        for _ in range(16):
            os.write(number, b"\0" * 2**20)
    except OSError:
        pass
