"""Measure speed as ratios within one run; machines are noisy, and seconds alone mean nothing."""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from .catalogue import find
from .mistakes import mistakes_of
from .release import EXERCISES, SOLUTIONS, course_root
from .specimens import hand_in, solution, with_mistake

SUBMISSIONS = 30


def throughput(console: Console) -> dict:
    """The same right and wrong `06_masks` notebooks through our grader with one job and through stock nbgrader."""
    exercise = find("06_masks")
    known = mistakes_of(exercise.module)
    with tempfile.TemporaryDirectory(prefix="autograder-bench-") as folder:
        course = Path(folder)
        for name in (SOLUTIONS, EXERCISES):
            (course / name).mkdir()
            shutil.copytree(course_root() / name / exercise.name, course / name / exercise.name)
        (course / "nbgrader_config.py").write_text(STOCK_CONFIG, encoding="utf-8")
        for i in range(SUBMISSIONS):
            wrong = with_mistake(exercise, known[i % len(known)])
            hand_in(course / "submitted", f"student{i:02}", exercise, wrong if i % 2 else solution(exercise))
        console.print(f"ours: {SUBMISSIONS} submissions, one job …")
        ours = _timed([sys.executable, "-m", "autograder", "grade", "submitted", "--out", "grades", "--jobs", "1",
                       "--db", f"sqlite:///{folder}/ours.db", "--fresh", "--lang", "en"], course)  # fmt: skip
        each = [r["seconds"] for r in json.loads((course / "grades/results.json").read_text())["submissions"]]
        shutil.rmtree(course / "autograded")
        console.print("stock nbgrader, the same submissions; this takes a few minutes …")
        nbgrader = [sys.executable, "-m", "nbgrader"]
        _timed([*nbgrader, "generate_assignment", exercise.name, "--force"], course)
        stock = _timed([*nbgrader, "autograde", exercise.name], course)
        graded = len(list((course / "autograded").glob("*/*/*.ipynb")))
        if graded != SUBMISSIONS:
            raise RuntimeError(f"stock nbgrader graded {graded} of {SUBMISSIONS} submissions")
    return {
        "submissions": SUBMISSIONS,
        "ours_seconds_per_submission": ours / SUBMISSIONS,
        "ours_seconds_of_grading_alone": statistics.median(each),
        "stock_seconds_per_submission": stock / SUBMISSIONS,
        "times_faster": stock / ours,
    }


def site(console: Console) -> dict:
    """The whole site from nothing, in both languages, and again after one sentence on one page."""
    with tempfile.TemporaryDirectory(prefix="autograder-bench-") as folder:
        course = Path(folder)
        for name in ("book", EXERCISES, "autograder"):
            shutil.copytree(course_root() / name, course / name, ignore=shutil.ignore_patterns("__pycache__", "_build"))
        for name in ("_config.yml", "_toc.yml"):
            shutil.copy(course_root() / name, course / name)
        build = [sys.executable, "book/build.py"]
        console.print("the site from nothing, every chapter executed; this takes a few minutes …")
        clean = _timed(build, course)
        page = course / "book" / "en" / "06_masks.md"
        page.write_text(page.read_text(encoding="utf-8") + "\nOne more sentence.\n", encoding="utf-8")
        console.print("again, after one sentence on one page …")
        touched = _timed(build, course)
        unchanged = _timed(build, course)
        pages = len(list((course / "_build" / "site").glob("*/*.html")))
    return {
        "pages": pages,
        "seconds_from_nothing": clean,
        "seconds_after_one_page": touched,
        "seconds_with_nothing_to_do": unchanged,
        "times_faster_after_one_page": clean / touched,
    }


STOCK_CONFIG = """c = get_config()
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
"""

BENCHMARKS = {"throughput": throughput, "site": site}


def bench(names: list[str], console: Console, path: Path | None) -> None:
    """Run the benchmarks, print a table, and write the numbers as JSON if asked."""
    measured = {name: BENCHMARKS[name](console) for name in names}
    table = Table("benchmark", "what", "measured", box=box.HEAVY_HEAD if console.is_terminal else None)
    for name, numbers in measured.items():
        for what, number in numbers.items():
            table.add_row(name, what.replace("_", " "), f"{number:.3g}" if isinstance(number, float) else str(number))
    console.print(table)
    if path is not None:
        machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        path.write_text(json.dumps({"machine": machine, "benchmarks": measured}, indent=1), encoding="utf-8")


def _timed(command: list[str], folder: Path) -> float:
    environment = dict(os.environ, PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    started = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[1:4])} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return time.monotonic() - started
