"""From a submission to its result: read, load, examine, diagnose.

`grade_submission` takes and returns plain data, so that it can run here, in a pool of processes or on another machine.
Whatever goes wrong inside becomes a verdict for that submission alone.
"""

import time
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat

from . import zygote
from .catalogue import Exercise, Limits, Part, catalogue
from .examiner import examination
from .findings import part_report, report
from .proxy import Student
from .sitting import Cell, Sitting
from .starvation import Queueing
from .submission import Submission, read
from .verdicts import Broken, Verdict, gravest

PATIENCE = 5  # times the limits of real time, on a machine that is too busy; the limit of processor time stays


@dataclass
class Graded:
    """The result of one submission: `result` is what is reported, the rest makes the autograded notebook."""

    result: dict
    cells: list[Cell] = field(default_factory=list)
    notebook: nbformat.NotebookNode | None = None
    missing_layers: dict[str, str] = field(default_factory=dict)


def grade(student: str, exercise: str, path: str | None, salt: str, device: str = "cpu") -> Graded:
    """Grade the file at `path`."""
    return grade_submission(Submission(student, exercise, Path(path) if path else None), salt, device)


def grade_submission(submission: Submission, salt: str, device: str = "cpu") -> Graded:
    """Grade one submission. Never raises for anything a submission can contain."""
    started = time.monotonic()
    exercise = submission.exercise
    known = catalogue().get(exercise)
    if known is None:
        names = ", ".join(catalogue())
        graded = refused(
            submission,
            None,
            Broken(
                Verdict.MISSING,
                f"no exercise is called {exercise}; there are {names}",
                f"没有叫 {exercise} 的练习；现有 {names}",
            ),
        )
    else:
        try:
            graded = _grade_fairly(submission, known, salt, device)
        except Broken as unreadable:
            graded = refused(submission, known, unreadable)
        except Exception as fault:
            where = traceback.format_exc(limit=-3)
            graded = refused(
                submission,
                known,
                Broken(
                    Verdict.GRADER_ERROR,
                    f"the grader failed ({type(fault).__name__}: {fault}); this is not the student's fault\n{where}",
                    f"评分程序出错（{type(fault).__name__}: {fault}），不是学生的问题\n{where}",
                ),
            )
    graded.result["seconds"] = round(time.monotonic() - started, 3)
    return graded


def _grade_fairly(submission: Submission, exercise: Exercise, salt: str, device: str) -> Graded:
    """Too slow on a machine that is too busy is no verdict: then everything is tried again with more time."""
    queueing = Queueing()
    graded = _grade_known(submission, exercise, salt, device, exercise.limits)
    if graded.result["verdict"] == Verdict.TIMEOUT and queueing.is_starved():
        limits = exercise.limits
        more = {"wall_seconds": limits.wall_seconds * PATIENCE, "call_seconds": limits.call_seconds * PATIENCE}
        graded = _grade_known(submission, exercise, salt, device, replace(limits, **more))
    return graded


def _grade_known(submission: Submission, exercise: Exercise, salt: str, device: str, limits: Limits) -> Graded:
    cells, notebook = read(submission, exercise)
    with Sitting(zygote.shared(device), replace(exercise, limits=limits), cells) as sitting:
        student = Student(sitting)
        present = student.defined([part.name for part in exercise.parts]) if cells else {}
        parts = [_part(exercise, part, student, sitting, present, salt) for part in exercise.parts]
    result = _summary(submission, parts)
    result["verdict"] = gravest([Verdict(result["verdict"]), sitting.gravest_cell()])
    return Graded(result, cells, notebook, sitting.missing_layers)


def _part(exercise, part: Part, student: Student, sitting: Sitting, present: dict, salt: str) -> dict:
    if isinstance(present, dict) and present.get(part.name) is None:
        broken = sitting.verdict_on(part) or Broken(
            Verdict.MISSING, f"{part.name}: not defined", f"{part.name}：没有定义"
        )
        return part_report(part, 0.0, broken.verdict, None, broken.message, [])
    result = examination(exercise).examine(student, salt, [part])[0]
    return report(exercise, result, salt)


def refused(submission: Submission, exercise: Exercise | None, broken: Broken) -> Graded:
    """Every part gets the reason for which the whole could not be graded."""
    parts = [part_report(p, 0.0, broken.verdict, None, broken.message, []) for p in exercise.parts] if exercise else []
    result = _summary(submission, parts)
    return Graded(result | {"verdict": str(broken.verdict), "message": broken.message})


def _summary(submission: Submission, parts: list[dict]) -> dict:
    return {
        "student": submission.student,
        "exercise": submission.exercise,
        "score": round(sum(part["score"] for part in parts), 2),
        "max_score": round(sum(part["max_score"] for part in parts), 2),
        "verdict": str(gravest([Verdict(part["verdict"]) for part in parts] or [Verdict.MISSING])),
        "seconds": 0.0,
        "parts": parts,
    }
