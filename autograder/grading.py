"""From a submission to its result: read, load, examine, diagnose.

`grade` is the one work function: it takes and returns plain data, so that it can run here, in a pool of processes or on
another machine. Whatever goes wrong inside becomes a verdict for that submission alone.
"""

import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from . import zygote
from .catalogue import Exercise, Part, catalogue
from .diagnosis import diagnose
from .examiner import PartResult, examination
from .proxy import Student
from .sitting import Cell, Sitting
from .submission import Submission, read
from .verdicts import Broken, Verdict, gravest


@dataclass
class Graded:
    """The result of one submission: `result` is what is reported, the rest makes the autograded notebook."""

    result: dict
    cells: list[Cell] = field(default_factory=list)
    notebook: nbformat.NotebookNode | None = None
    missing_layers: dict[str, str] = field(default_factory=dict)


def grade(student: str, exercise: str, path: str | None, salt: str, device: str = "cpu") -> Graded:
    """Grade one submission. Never raises for anything a submission can contain."""
    started = time.monotonic()
    submission = Submission(student, exercise, Path(path) if path else None)
    known = catalogue().get(exercise)
    if known is None:
        names = ", ".join(catalogue())
        graded = _refused(
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
            graded = _grade_known(submission, known, salt, device)
        except Broken as unreadable:
            graded = _refused(submission, known, unreadable)
        except Exception as fault:
            where = traceback.format_exc(limit=-3)
            graded = _refused(
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


def _grade_known(submission: Submission, exercise: Exercise, salt: str, device: str) -> Graded:
    cells, notebook = read(submission, exercise)
    with Sitting(zygote.shared(device), exercise, cells) as sitting:
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


def report(exercise: Exercise, result: PartResult, salt: str) -> dict:
    """What is told about one examined part."""
    mistake = diagnose(exercise, result, salt)
    first = result.first_broken
    message = {"en": "", "zh": ""}
    if first:
        message = dict(first.broken.message)
        if result.verdict is Verdict.WRONG:
            message = {
                "en": f"{message['en']}\n  promise: {first.promise.text['en']}",
                "zh": f"{message['zh']}\n  要求：{first.promise.text['zh']}",
            }
        if mistake:
            message["en"] += f"\n  likely mistake: {mistake.text['en']}"
            message["zh"] += f"\n  很可能是这个错误：{mistake.text['zh']}"
        if result.verdict is not Verdict.MISSING:
            message["en"] += f"\n  read: chapter {exercise.chapter}, «{exercise.title['en']}»"
            message["zh"] += f"\n  阅读：第 {exercise.chapter} 章《{exercise.title['zh']}》"
    promises = [{"kept": outcome.broken is None, **outcome.promise.text} for outcome in result.outcomes]
    return part_report(result.part, result.score, result.verdict, mistake and mistake.name, message, promises)


def part_report(part: Part, score: float, verdict: Verdict, mistake, message: dict, promises: list) -> dict:
    return {
        "id": part.name,
        "score": score,
        "max_score": part.points,
        "verdict": str(verdict),
        "mistake": mistake,
        "message": message,
        "promises": promises,
    }


def _refused(submission: Submission, exercise: Exercise | None, broken: Broken) -> Graded:
    """Every part gets the reason for which the whole could not be graded."""
    parts = [part_report(p, 0.0, broken.verdict, None, broken.message, []) for p in exercise.parts] if exercise else []
    result = _summary(submission, parts)
    return Graded(result | {"verdict": str(broken.verdict), "message": broken.message})


def _summary(submission: Submission, parts: list[dict]) -> dict:
    return {
        "student": submission.student,
        "exercise": submission.exercise,
        "score": round(sum(part["score"] for part in parts), 2),
        "max_score": sum(part["max_score"] for part in parts),
        "verdict": str(gravest([Verdict(part["verdict"]) for part in parts] or [Verdict.MISSING])),
        "seconds": 0.0,
        "parts": parts,
    }
