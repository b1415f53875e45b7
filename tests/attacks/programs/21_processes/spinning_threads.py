"""Start as many spinning threads as it can. Others must keep their time."""

import threading


def spin():
    while True:
        pass


try:
    for _ in range(500):
        threading.Thread(target=spin, daemon=True).start()
except (RuntimeError, MemoryError):
    pass
