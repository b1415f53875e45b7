"""Measure speed as ratios within one run, because seconds depend on the machine and on what else it does.

python -m autograder bench throughput --submissions 30
"""

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from .checkspeed import check_speed
from .dask import dask
from .growth import growth
from .plot import draw
from .site import site
from .throughput import throughput
from .timing import Numbers, place

BENCHMARKS: dict[str, Callable[[Console, int], Numbers]] = {
    "throughput": throughput,
    "growth": growth,
    "dask": dask,
    "check": check_speed,
    "site": site,
}
SUBMISSIONS = 200


def bench(names: list[str], console: Console, path: Path | None, submissions: int = SUBMISSIONS) -> None:
    """Run the benchmarks, print a table, write the numbers as JSON and draw the throughput."""
    measured = {name: BENCHMARKS[name](console, submissions) for name in names}
    table = Table("benchmark", "what", "measured", box=box.HEAVY_HEAD if console.is_terminal else None)
    for name, numbers in measured.items():
        for what, number in numbers.items():
            table.add_row(name, what.replace("_", " "), f"{number:.3g}" if isinstance(number, float) else str(number))
    console.print(table)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    path = path or place() / "bench.json"
    path.write_text(json.dumps({"machine": machine, "benchmarks": measured}, indent=1), encoding="utf-8")
    console.print(f"numbers: {path}")
    if "throughput" in measured:
        console.print(f"plot: {draw(measured['throughput'], place() / 'throughput.svg')}")
