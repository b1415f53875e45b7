"""Was the code slow, or the machine?

A time limit is fair only if the process gets a processor when it needs one. For each thread the kernel counts how long
it ran and how long it waited for a processor. Our own thread waits in the same queue as the student's, so we measure it.
"""

import os
from pathlib import Path

STARVED = 0.25  # share of the time in which a thread was ready to run but had to wait
COUNTS = Path("/proc/thread-self/schedstat")


class CpuWait:
    """How long this thread waits for a processor from now on."""

    def __init__(self) -> None:
        self.ran, self.waited = _counts()

    def is_starved(self) -> bool:
        ran, waited = (now - before for now, before in zip(_counts(), (self.ran, self.waited), strict=True))
        if ran + waited == 0:  # this kernel does not measure it
            return os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
        return waited / (ran + waited) > STARVED


def _counts() -> tuple[int, int]:
    try:
        ran, waited, _ = COUNTS.read_text().split()
        return int(ran), int(waited)
    except (OSError, ValueError):
        return 0, 0
