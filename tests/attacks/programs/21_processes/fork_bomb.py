"""Fork without end. No process may be left, and nobody may be slowed."""

import os

try:
    for _ in range(10_000):
        os.fork()
except OSError:
    pass
