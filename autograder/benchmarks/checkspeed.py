"""How long `check` takes in a running kernel, against `import torch` in the same run.

Every part is checked with the right answer, with every known mistake and with a mistake that nobody knows, for which
all known ones are tried in vain; each time as the first check of its kernel: in a process forked for that one check, to
which the time of loading the grader is added. Both sides are measured in processor time, so that a machine with other work
to do gives the same ratios. One slow moment among a thousand checks is no slow check: the right answer and the slowest
wrong ones are measured three times, and the middle counts.
"""

import compileall
import importlib
import os
import pickle
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from autograder.catalogue import Exercise, Part, catalogue
from autograder.checks import non_answers
from autograder.learner.notebook import check
from autograder.learner.progress import PLACE
from autograder.mistakes import mistakes_of

KERNEL = "ipykernel.kernelapp"  # what a notebook's own process has loaded before the learner's first cell
TIMES = 3  # how often an import is measured, and a check that may be the slowest
SLOWEST = 3  # wrong answers of a part that may be the slowest
UNKNOWN = "(unknown)"  # the mistake that has no name
ALLOWED = 0.5  # of `import torch`


def check_speed(console: Console, submissions: int) -> dict:
    """Print each part's ratio, the slowest first, and return the worst of all. There are no submissions here."""
    compileall.compile_dir(Path(__file__).parents[1], quiet=2)  # as pip does when it installs
    for module in (KERNEL, "autograder.learner.check_part"):
        importlib.import_module(module)
    rows, units = [], []
    for exercise in catalogue().values():  # each with an `import torch` of its own, because the machine's pace changes
        unit, loading = (
            _import_seconds("torch"),
            _import_seconds("autograder.learner.check_part", after=f"import torch, {KERNEL}"),
        )
        units.append(unit)
        found = [_slowest(exercise, part, unit, loading) for part in exercise.parts]
        rows += found
        console.print(f"{exercise.name}: {max(_worst(row) for row in found):.2f} at most", markup=False)
    rows.sort(key=_worst, reverse=True)
    _show(rows, console)
    ratios = [ratio for row in rows for ratio in (row["right"], row["wrong"])]
    return {
        "import_torch_seconds": statistics.median(units),
        "parts": len(rows),
        "answers_checked": sum(row["answers"] for row in rows),
        "worst_ratio_to_import_torch": max(ratios),
        "median_ratio_to_import_torch": statistics.median(ratios),
        "parts_above_half": sum(_worst(row) >= ALLOWED for row in rows),
    }


def _worst(row: dict) -> float:
    return max(row["right"], row["wrong"])


def _import_seconds(module: str, after: str = "") -> float:
    code = f"{after}\nimport time\nstarted = time.process_time()\nimport {module}\nprint(time.process_time() - started)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(TIMES)
    ]
    return statistics.median(float(run.stdout) for run in runs)


def _slowest(exercise: Exercise, part: Part, unit: float, loading: float) -> dict:
    reference = importlib.import_module(f"autograder.reference.{exercise.module}")
    right = {p.name: getattr(reference, p.name) for p in exercise.parts}
    wrong = {m.name: right | {part.name: m.answer} for m in mistakes_of(exercise.module) if m.part == part.name}
    wrong[UNKNOWN] = right | {part.name: non_answers.disguised(part, right[part.name], _slightly_off)}
    once = {name: _first_check(part, answers) for name, answers in wrong.items()}
    seconds = {name: _middle(part, wrong[name]) for name in sorted(once, key=once.get)[-SLOWEST:]}
    slowest = max(seconds, key=seconds.get)
    return {
        "exercise": exercise.name,
        "part": part.name,
        "right": (loading + _middle(part, right)) / unit,
        "wrong": (loading + seconds[slowest]) / unit,
        "mistake": slowest,
        "answers": 1 + len(wrong),
    }


def _slightly_off(x):
    return 1.01 * x if x.is_floating_point() else x


def _middle(part: Part, namespace: dict) -> float:
    return statistics.median(_first_check(part, namespace) for _ in range(TIMES))


def _first_check(part: Part, namespace: dict) -> float:
    """Seconds of one check, shown as HTML, in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.environ[PLACE] = ""  # keep no progress
            started = time.process_time()
            check(part.name, namespace=namespace)._repr_html_()
            os.write(writer, pickle.dumps(time.process_time() - started))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        told = answer.read()
    os.waitpid(child, 0)
    if not told:
        raise RuntimeError(f"check({part.name!r}) failed; run it in a notebook to see why")
    return pickle.loads(told)


def _show(rows: list[dict], console: Console) -> None:
    table = Table("exercise", "part", "right", "wrong", "slowest mistake",
                  box=box.HEAVY_HEAD if console.is_terminal else None)  # fmt: skip
    for row in rows:
        table.add_row(row["exercise"], row["part"], f"{row['right']:.2f}", f"{row['wrong']:.2f}", row["mistake"])
    console.print(table)
