"""How long `check` takes in a running kernel, compared with `import torch` in the same run.

Every part is checked with the right answer, with every known mistake and with an unknown mistake, which is compared with
all known ones. Each check is the first one of its kernel: it runs in its own forked process, and the time of loading the
grader is added. Processor time is measured, so a busy machine gives the same ratios. To exclude random delays, the right
answer and the slowest wrong ones are measured three times, and the median counts.
"""

import compileall
import importlib
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from autograder.catalogue import Exercise, Part, catalogue
from autograder.checks import non_answers
from autograder.learner.notebook import check
from autograder.learner.progress import PLACE
from autograder.mistakes import mistakes_of

from .timing import Numbers

KERNEL = "ipykernel.kernelapp"  # loaded in a notebook's process before the learner's first cell
TIMES = 3  # how often an import is measured, and a check that may be the slowest
SLOWEST = 3  # how many wrong answers of a part are measured again, because they may be the slowest
UNKNOWN = "(unknown)"  # the mistake without a name
ALLOWED = 0.5  # of `import torch`

Namespace = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """The result of one part, as ratios to `import torch`."""

    exercise: str
    part: str
    right: float
    wrong: float  # the slowest wrong answer
    mistake: str  # its name
    answers: int  # how many answers were checked

    @property
    def worst(self) -> float:
        return max(self.right, self.wrong)


def check_speed(console: Console, submissions: int) -> Numbers:
    """Print the ratio of each part, the slowest first, and return the worst of all. `submissions` is not used."""
    compileall.compile_dir(Path(__file__).parents[1], quiet=2)  # as pip does when it installs
    for module in (KERNEL, "autograder.learner.check_part"):
        importlib.import_module(module)
    rows: list[Row] = []
    units: list[float] = []
    for exercise in catalogue().values():
        unit = _import_seconds("torch")  # measured again for each exercise, because the speed of the machine changes
        loading = _import_seconds("autograder.learner.check_part", after=f"import torch, {KERNEL}")
        units.append(unit)
        found = [_slowest(exercise, part, unit, loading) for part in exercise.parts]
        rows += found
        console.print(f"{exercise.name}: {max(row.worst for row in found):.2f} at most", markup=False)
    rows.sort(key=lambda row: row.worst, reverse=True)
    _show(rows, console)
    ratios = [ratio for row in rows for ratio in (row.right, row.wrong)]
    return {
        "import_torch_seconds": statistics.median(units),
        "parts": len(rows),
        "answers_checked": sum(row.answers for row in rows),
        "worst_ratio_to_import_torch": max(ratios),
        "median_ratio_to_import_torch": statistics.median(ratios),
        "parts_above_half": sum(row.worst >= ALLOWED for row in rows),
    }


def _import_seconds(module: str, after: str = "") -> float:
    code = f"{after}\nimport time\nstarted = time.process_time()\nimport {module}\nprint(time.process_time() - started)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(TIMES)
    ]
    return statistics.median(float(run.stdout) for run in runs)


def _slowest(exercise: Exercise, part: Part, unit: float, loading: float) -> Row:
    reference = importlib.import_module(f"autograder.reference.{exercise.module}")
    right = {p.name: getattr(reference, p.name) for p in exercise.parts}
    wrong = {m.name: right | {part.name: m.answer} for m in mistakes_of(exercise.module) if m.part == part.name}
    wrong[UNKNOWN] = right | {part.name: non_answers.disguised(part, right[part.name], _slightly_off)}
    once = {name: _first_check(part, answers) for name, answers in wrong.items()}
    seconds = {name: _median(part, wrong[name]) for name in sorted(once, key=once.__getitem__)[-SLOWEST:]}
    slowest = max(seconds, key=seconds.__getitem__)
    return Row(
        exercise=exercise.name,
        part=part.name,
        right=(loading + _median(part, right)) / unit,
        wrong=(loading + seconds[slowest]) / unit,
        mistake=slowest,
        answers=1 + len(wrong),
    )


def _slightly_off(x: torch.Tensor) -> torch.Tensor:
    return 1.01 * x if x.is_floating_point() else x


def _median(part: Part, namespace: Namespace) -> float:
    return statistics.median(_first_check(part, namespace) for _ in range(TIMES))


def _first_check(part: Part, namespace: Namespace) -> float:
    """The seconds of one check, shown as HTML, in its own process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.environ[PLACE] = ""  # keep no progress
            started = time.process_time()
            check(part.name, namespace=namespace)._repr_html_()
            os.write(writer, repr(time.process_time() - started).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        seconds = answer.read()
    os.waitpid(child, 0)
    if not seconds:
        raise RuntimeError(f"check({part.name!r}) failed; run it in a notebook to see why")
    return float(seconds)


def _show(rows: list[Row], console: Console) -> None:
    lines = box.HEAVY_HEAD if console.is_terminal else None
    table = Table("exercise", "part", "right", "wrong", "slowest mistake", box=lines)
    for row in rows:
        table.add_row(row.exercise, row.part, f"{row.right:.2f}", f"{row.wrong:.2f}", row.mistake)
    console.print(table)
