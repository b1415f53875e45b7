"""Whether time per submission and memory stay the same as the class grows."""

import tempfile
from pathlib import Path

from rich.console import Console

from . import masks_class
from .timing import Numbers, grade


def growth(console: Console, submissions: int) -> Numbers:
    """Grade 10 submissions, then five times `submissions`. The start-up is measured separately from the time for each."""
    small, large = 10, 5 * submissions
    measured: Numbers = {}
    each: dict[int, float] = {}
    peak_mb: dict[int, float] = {}
    for size in (small, large):
        with tempfile.TemporaryDirectory(prefix="autograder-bench-") as folder:
            masks_class.right_and_wrong(Path(folder) / "submitted", size)
            console.print(f"{size} submissions …")
            run = grade(Path(folder))
        graded = run.lines[:size]
        each[size] = (graded[-1] - graded[0]) / (size - 1) + (run.seconds - graded[-1]) / size
        measured[f"seconds_before_the_first_of_{size}"] = graded[0]
        measured[f"seconds_each_of_{size}"] = each[size]
        measured[f"peak_mb_with_{size}"] = peak_mb[size] = run.peak_mb
    measured["times_as_long_each"] = each[large] / each[small]
    measured["times_the_memory"] = peak_mb[large] / peak_mb[small]
    return measured
