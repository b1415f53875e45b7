"""Run many seeded cases, and say how to replay each of them."""

import signal
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parent / "seeds"
SLOW = 120  # seconds of a single case that count as a hang, on the slowest machine


class Hang(BaseException):
    """A case that does not end in time."""


def faults(kind: str, case: Callable[[str], str | None], cases: int) -> dict[str, str]:
    """What went wrong, by seed: first the seeds that once found a fault, then the numbers up to `cases`."""
    found = {}
    before = signal.signal(signal.SIGALRM, _hang)
    try:
        for seed in [*kept(kind), *(f"{kind} {number}" for number in range(cases))]:
            signal.alarm(SLOW)
            try:
                if fault := case(seed):
                    found[seed] = fault
            except Hang:
                found[seed] = "hangs"
            except Exception as crash:
                found[seed] = f"crashes with {type(crash).__name__}: {crash}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return found


def kept(kind: str) -> list[str]:
    """Seeds that once found a fault, one per line."""
    return (FOLDER / f"{kind}.txt").read_text(encoding="utf-8").splitlines()


def report(kind: str, found: dict[str, str], module: str, case: Callable) -> str:
    """How to replay what was found."""
    if not found:
        return ""
    seed, fault = next(iter(found.items()))
    return (
        f"{len(found)} faults; the first: {fault}\nto replay it: python -c "
        f'"from {module} import {case.__name__}; print({case.__name__}({seed!r}))" with PYTHONPATH=tests\n'
        f"when it is fixed, keep the seed: echo {seed!r} >> {FOLDER / f'{kind}.txt'}\nothers: {list(found)[1:20]}"
    )


def _hang(*_):
    raise Hang
