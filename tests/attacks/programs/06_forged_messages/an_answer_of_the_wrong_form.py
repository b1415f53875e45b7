"""Answer by hand with fields of the wrong types, to upset the reader. It must earn nothing, and be the student's fault."""

import os
import struct

FORMS = (
    b'{"dict":{"error":{"dict":{"kind":{"list":[]},"kinds":5,"lines":7,"text":null}}}}',
    b'{"dict":{"value":{"list":[]},"counts":{"dict":{"operators":3}},"changed":1}}',
)


def answer_with(text):
    for number in range(3, 64):
        try:
            os.write(number, struct.pack(">II", len(text), 0) + text)
        except OSError:
            pass
    os._exit(0)


def causal_mask(q_len, k_len=None):
    answer_with(FORMS[0])


def padding_mask(lengths, max_len):
    answer_with(FORMS[1])
