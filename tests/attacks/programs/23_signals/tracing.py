"""Attach to its parent with ptrace and read its memory. It must be refused."""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
ATTACH, SEIZE = 16, 0x4206
for target in (os.getppid(), 1):
    if target != os.getpid() and (libc.ptrace(ATTACH, target, 0, 0) == 0 or libc.ptrace(SEIZE, target, 0, 0) == 0):
        raise RuntimeError("@MARK@ read " + "this: attached")
