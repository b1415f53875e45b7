"""Leave a daemon in a session of its own. It must not survive."""

import ctypes
import os
import time

try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(15, b"@COMM@")
            time.sleep(120)
        os._exit(0)
except OSError:
    pass
