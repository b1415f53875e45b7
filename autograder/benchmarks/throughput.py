"""Grade the same right and wrong notebooks with our grader, stock nbgrader, otter, and the floor.

Every grader runs as its manual says, with its default settings. Ours uses all cores; `nbgrader autograde` and `otter run`
grade one submission after another, because without containers they have no other way. They run a few plain asserts per
part; ours runs its whole suite in a sandbox, names the mistakes, and writes the gradebook, notebooks and pages.
"""

import json
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from nbgrader.api import Gradebook
from rich.console import Console

from autograder.checks.samples import hand_in, solution
from autograder.course import EXERCISES, SOLUTIONS

from . import masks_class, otter
from .timing import Numbers, grade, timed

STOCK_CONFIG = """c = get_config()
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
"""


def throughput(console: Console, submissions: int) -> Numbers:
    """A third of the submissions is right, a third wrong, the rest broken or endless. Other graders do not get the rest."""
    number = 2 * submissions // 3
    with tempfile.TemporaryDirectory(prefix="autograder-bench-") as folder:
        both, rest, stock = (Path(folder) / name for name in ("both", "rest", "stock"))
        masks_class.right_and_wrong(both / "submitted", number)
        masks_class.broken(rest / "submitted", submissions - number)
        console.print(f"ours: {number} right and wrong submissions …")
        ours = grade(both).seconds / number
        each = [r["seconds"] for r in json.loads((both / "grades" / "results.json").read_text())["submissions"]]
        console.print(f"ours: {submissions - number} broken and endless ones …")
        broken = grade(rest).seconds / (submissions - number)
        console.print("the floor: fork, load the cells, call the functions …")
        floor = _floor(both)
        console.print(f"stock nbgrader, the same {number}; this takes some seconds each …")
        nbgrader = _stock(both / "submitted", stock) / number
        console.print(f"otter run, the same {number}; this takes some seconds each …")
        otters: float | str
        try:
            otters = otter.seconds(both / "submitted", Path(folder) / "otter", console) / number
        except otter.NotMeasured as reason:
            otters = f"not measured: {reason}"
    return {
        "submissions_right_and_wrong": number,
        "jobs": os.cpu_count(),
        "ours_seconds_each": ours,
        "ours_seconds_of_grading_alone": statistics.median(each),
        "ours_seconds_each_broken_or_endless": broken,
        "floor_seconds_each": floor,
        "stock_nbgrader_seconds_each": nbgrader,
        "otter_run_seconds_each": otters,
        "times_the_floor": ours / floor,
        "times_faster_than_stock_nbgrader": nbgrader / ours,
        "times_faster_than_otter_run": otters / ours if isinstance(otters, float) else otters,
    }


def _floor(folder: Path) -> float:
    """Seconds for each submission, after everything is imported."""
    timed(["-m", "autograder.benchmarks.floor", "submitted", "floor.json"], folder)
    return float(json.loads((folder / "floor.json").read_text())["seconds_each"])


def _stock(submitted: Path, course: Path) -> float:
    """Seconds of `nbgrader autograde` in a separate course, with plain asserts in the notebook as tests."""
    exercise = masks_class.exercise()
    (course / EXERCISES).mkdir(parents=True)
    (course / "nbgrader_config.py").write_text(STOCK_CONFIG, encoding="utf-8")
    hand_in(course, SOLUTIONS, exercise, masks_class.with_asserts(solution(exercise)))
    shutil.copytree(submitted, course / "submitted")
    timed(["-m", "nbgrader", "generate_assignment", exercise.name, "--force"], course)
    run = timed(["-m", "nbgrader", "autograde", exercise.name], course)
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        marks = {s.student.id: s.score / s.max_score for s in book.assignment_submissions(exercise.name)}
    wanted = {path.name for path in submitted.iterdir()}
    right = {student for student in wanted if int(student[-4:]) % 2 == 0}
    if marks.keys() != wanted or any(marks[student] != 1.0 for student in right):
        raise RuntimeError(f"stock nbgrader graded {len(marks)} of {len(wanted)} submissions, or a right one wrong")
    return run.seconds
