"""Send many true-looking answers ahead of the questions, so that they are out of step. It must earn nothing."""

import os
import struct

text = b'{"dict":{"value":{"dict":{"causal_mask":"function","padding_mask":"function"}},"output":"","error":null}}'
frame = struct.pack(">II", len(text), 0) + text
for number in range(3, 256):
    try:
        for _ in range(50):
            os.write(number, frame)
    except OSError:
        pass
