"""Listen for whoever comes, and stay after the grading. Nothing may be left listening."""

import os
import socket

try:
    ear = socket.socket(socket.AF_UNIX)
    ear.bind("\0@MARK@")
    ear.listen()
    if os.fork() == 0:
        import ctypes
        import time

        ctypes.CDLL(None).prctl(15, b"@COMM@")
        os.setsid()
        time.sleep(120)
        os._exit(0)
except OSError:
    pass
