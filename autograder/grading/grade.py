"""From a submission to its report: read, run, examine, diagnose.

`grade_submission` takes and returns plain data, so it can run here, in a pool of processes or on another machine.
Anything that goes wrong inside becomes a verdict on that submission only.
"""

import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from nbformat import NotebookNode

from autograder.catalogue import Exercise, Limits, Part, catalogue
from autograder.exam.examiner import examination
from autograder.exam.part_report import not_examined, report
from autograder.exam.proxy import Student
from autograder.intake.submission import Submission, read
from autograder.isolation import zygote
from autograder.isolation.busy import CpuWait
from autograder.isolation.guarantees import MissingLayers
from autograder.isolation.session import CellRun, StudentSession
from autograder.results import PartReport, SubmissionReport
from autograder.verdicts import Broken, Verdict, gravest

PATIENCE = 5  # factor on the limits of real time if the machine is too busy; processor time keeps its limit


@dataclass
class Graded:
    """A graded submission: the report, and what is needed to make the autograded notebook."""

    report: SubmissionReport
    cells: list[CellRun] = field(default_factory=list)
    notebook: NotebookNode | None = None


@dataclass(frozen=True)
class Conditions:
    """What is the same for every submission of a run. `may_lack` are the layers that the sandbox may lack; None: any."""

    salt: str
    device: str = "cpu"
    may_lack: frozenset[str] | None = frozenset()


def grade_file(student: str, exercise: str, path: Path, conditions: Conditions) -> Graded:
    """Grade the file at `path`."""
    return grade_submission(Submission(student, exercise, path), conditions)


def grade_submission(submission: Submission, conditions: Conditions) -> Graded:
    """Grade one submission. Never raises for anything a submission can contain."""
    started = time.monotonic()
    exercise = catalogue().get(submission.exercise)
    try:
        graded = (
            _grade_fairly(submission, exercise, conditions)
            if exercise
            else refused(submission, None, _unknown(submission))
        )
    except Broken as unreadable:
        graded = refused(submission, exercise, unreadable)
    except MissingLayers as missing:
        graded = refused(submission, exercise, Broken(Verdict.GRADER_ERROR, missing.message.en, missing.message.zh))
    except Exception as fault:
        graded = refused(submission, exercise, _our_fault(fault))
    graded.report = replace(graded.report, seconds=round(time.monotonic() - started, 3))
    return graded


def _unknown(submission: Submission) -> Broken:
    name, names = submission.exercise, ", ".join(catalogue())
    return Broken(
        Verdict.MISSING, f"no exercise is called {name}; there are {names}", f"没有叫 {name} 的练习；现有 {names}"
    )


def _our_fault(fault: Exception) -> Broken:
    where = traceback.format_exc(limit=-3)
    return Broken(
        Verdict.GRADER_ERROR,
        f"the grader failed ({type(fault).__name__}: {fault}); this is not the student's fault\n{where}",
        f"评分程序出错（{type(fault).__name__}: {fault}），不是学生的问题\n{where}",
    )


def _grade_fairly(submission: Submission, exercise: Exercise, conditions: Conditions) -> Graded:
    """Grade. If it was too slow and the machine was too busy, grade again with more time."""
    waiting, limits = CpuWait(), exercise.limits
    graded = _grade_known(submission, exercise, conditions, limits)
    if graded.report.verdict is Verdict.TIMEOUT and waiting.is_starved():
        more = replace(limits, wall_seconds=limits.wall_seconds * PATIENCE, call_seconds=limits.call_seconds * PATIENCE)
        graded = _grade_known(submission, exercise, conditions, more)
    return graded


def _grade_known(submission: Submission, exercise: Exercise, conditions: Conditions, limits: Limits) -> Graded:
    cells, notebook = read(submission, exercise)
    with StudentSession(zygote.shared(conditions.device), exercise, cells, conditions.may_lack, limits) as session:
        student = Student(session)
        present = student.defined([part.name for part in exercise.parts]) if cells else {}
        parts = [_part(exercise, part, student, session, present, conditions.salt) for part in exercise.parts]
    found = _summary(submission, parts)
    return Graded(replace(found, verdict=gravest([found.verdict, session.gravest_cell()])), session.cells, notebook)


def _part(
    exercise: Exercise, part: Part, student: Student, session: StudentSession, present: object, salt: str
) -> PartReport:
    if broken := missing_part(part, session, present):
        return not_examined(part, broken)
    result = examination(exercise).examine(student, salt, [part])[0]
    return report(exercise, result, salt)


def missing_part(part: Part, session: StudentSession, present: object) -> Broken | None:
    """Why this part cannot be examined; None if it can. `present` says what each name is (see `Student.defined`)."""
    if not isinstance(present, dict) or present.get(part.name) is not None:
        return None
    not_there = Broken(Verdict.MISSING, f"{part.name}: not defined", f"{part.name}：没有定义")
    return session.verdict_on(part) or not_there


def refused(submission: Submission, exercise: Exercise | None, reason: Broken) -> Graded:
    """A result for a submission that could not be graded: every part gets the reason."""
    found = _summary(submission, [not_examined(part, reason) for part in exercise.parts] if exercise else [])
    return Graded(replace(found, verdict=reason.verdict, message=reason.message))


def _summary(submission: Submission, parts: Iterable[PartReport]) -> SubmissionReport:
    parts = tuple(parts)
    return SubmissionReport(
        student=submission.student,
        exercise=submission.exercise,
        score=round(sum(part.score for part in parts), 2),
        max_score=round(sum(part.max_score for part in parts), 2),
        verdict=gravest([part.verdict for part in parts] or [Verdict.MISSING]),
        seconds=0.0,
        parts=parts,
    )
