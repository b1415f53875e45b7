"""A learner's own notebooks, checked in this process: no sandbox is needed against oneself, and it works everywhere."""

import time
from pathlib import Path

from rich.console import Console

from . import card
from .catalogue import Exercise
from .examiner import PartResult, examination
from .grading import part_report, report
from .language import VERDICTS
from .proxy import Local, Student
from .release import EXERCISES, course_root
from .sitting import Cell
from .student.cells import new_shell, run
from .submission import Submission, read
from .verdicts import Broken, Verdict

OUTPUT_LIMIT = 65536


def namespace_of(cells: list[Cell]) -> tuple[dict, list[str]]:
    """Run the cells here; returns what they define, and what they raised."""
    shell = new_shell()
    shell.reset(new_session=True)
    raised = []
    for cell in cells:
        error = run(shell, cell.source, OUTPUT_LIMIT)["value"]["error"]
        if error:
            raised.append(f"{cell.name}: {error['kind']}: {error['text']}")
    return shell.user_ns, raised


def examine_file(exercise: Exercise, path: Path, salt: str = "") -> tuple[list[PartResult], list[str]]:
    """The results of a trusted notebook or script, part by part, and what its cells raised."""
    cells, _ = read(Submission("", exercise.name, path), exercise)
    namespace, raised = namespace_of([cell for cell in cells if not cell.source.lstrip().startswith("check(")])
    return examination(exercise).examine(Student(Local(namespace)), salt), raised


def check_notebooks(exercises: list[Exercise], lang: str, console: Console, root: Path | None = None) -> None:
    """Check each notebook and print what is right, what is wrong and which mistake it is."""
    for exercise in exercises:
        path = (root or course_root()) / EXERCISES / exercise.name / f"{exercise.name}.ipynb"
        console.rule(f"{exercise.name} · {exercise.title[lang]}")
        try:
            results, raised = examine_file(exercise, path)
            parts = [report(exercise, result, "") for result in results]
        except Broken as unreadable:
            raised = [f"{path}: {unreadable.message[lang]}"]
            parts = [part_report(p, 0.0, Verdict.MISSING, None, {"en": "", "zh": ""}, []) for p in exercise.parts]
        for line in raised:
            console.print(line, markup=False)
        for part in parts:
            if part["verdict"] in ("pass", "missing"):
                console.print(f"{'✓' if part['verdict'] == 'pass' else '·'} {part['id']}: "
                              f"{VERDICTS[part['verdict']][lang]}", markup=False)  # fmt: skip
            else:
                console.print(card.text(part, lang), markup=False)
        score = sum(part["score"] for part in parts)
        console.print(f"{score:g}/{exercise.points}\n")


def watch(exercises: list[Exercise], lang: str, console: Console) -> None:
    """Check a notebook again whenever it is saved, until Ctrl-C."""
    paths = {e: course_root() / EXERCISES / e.name / f"{e.name}.ipynb" for e in exercises}
    seen = {e: path.stat().st_mtime_ns for e, path in paths.items() if path.exists()}
    console.print("watching; Ctrl-C ends it" if lang == "en" else "正在监视，按 Ctrl-C 结束")
    while True:
        time.sleep(0.5)
        for exercise, path in paths.items():
            if path.exists() and path.stat().st_mtime_ns != seen.get(exercise):
                seen[exercise] = path.stat().st_mtime_ns
                check_notebooks([exercise], lang, console)
