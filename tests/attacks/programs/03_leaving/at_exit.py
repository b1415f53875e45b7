"""Register what never ends for the end of the process, beside right answers. They keep their marks; nothing hangs."""
# right answers follow

import atexit
import time


@atexit.register
def linger():
    while True:
        time.sleep(1)
