"""Open as many files, pipes and memory files as it can and keep them. Others must not lack any."""

import os

kept = []
try:
    while True:
        kept += [os.open("/dev/null", os.O_RDONLY), *os.pipe()]
except OSError:
    pass
