"""Whether a thousand submissions cost a thousand times one: time for each, and memory, as the class grows."""

import tempfile
from pathlib import Path

from rich.console import Console

from . import masks_class
from .timing import grade


def growth(console: Console, submissions: int) -> dict:
    """10 and then five times `submissions`. The start-up, paid once, is told apart from what each submission costs."""
    sizes, measured = (10, 5 * submissions), {}
    each = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="autograder-bench-") as folder:
            masks_class.right_and_wrong(Path(folder) / "submitted", size)
            console.print(f"{size} submissions …")
            run = grade(Path(folder))
        graded = run.lines[:size]
        each[size] = (graded[-1] - graded[0]) / (size - 1) + (run.seconds - graded[-1]) / size
        measured[f"seconds_before_the_first_of_{size}"] = graded[0]
        measured[f"seconds_each_of_{size}"] = each[size]
        measured[f"peak_mb_with_{size}"] = run.peak_mb
    measured["times_as_long_each"] = each[sizes[1]] / each[sizes[0]]
    measured["times_the_memory"] = measured[f"peak_mb_with_{sizes[1]}"] / measured[f"peak_mb_with_{sizes[0]}"]
    return measured
