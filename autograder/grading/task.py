"""The work of one worker: in this process, in a process of a pool, or on another machine.

A task is plain data and includes the submission's content. The result is plain data too.
"""

import platform
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol, TypeVar

import nbformat.v4

from autograder.catalogue import catalogue
from autograder.course import solution_path
from autograder.errors import Unfinished, UserError
from autograder.gradebook import returned
from autograder.intake.submission import Submission
from autograder.isolation import guarantees
from autograder.isolation.process import StudentProcess
from autograder.isolation.zygote import shared
from autograder.language import Text
from autograder.results import SubmissionReport
from autograder.verdicts import Broken, Verdict

from .fingerprint import grader
from .grade import Conditions, Graded, grade_file, grade_submission, refused

T = TypeVar("T")
TRIES = 3  # after this many dead workers a task is given up

_one_at_a_time = threading.RLock()  # a cluster's worker may have several threads, but the examiner needs one


@dataclass(frozen=True)
class Task:
    key: str
    submission: Submission  # loaded, so that its content is sent along
    conditions: Conditions
    lang: str


@dataclass(frozen=True)
class TaskResult:
    report: SubmissionReport
    notebook: str | None  # the autograded notebook; None for an unknown exercise


class Lost:
    """Replaces a value when the worker died at every try."""

    tries = TRIES


class Crew(Protocol):
    """Runs a function on several tasks at a time: processes of this machine, or a cluster."""

    def map(
        self, function: Callable[[T], Any], tasks: Iterable[T], meanwhile: Callable[[], None] = ...
    ) -> Iterator[tuple[T, Any]]:
        """Yield each task with the function's result, or with `Lost`, in the order in which they finish.

        `meanwhile` is called once, in this process, while the workers do the first tasks.
        """
        ...


class UnsoundGrader(UserError):
    """The grader rejects a solution that is right, so it must not grade anybody."""


def run_task(task: Task) -> TaskResult:
    """Grade one submission and make its autograded notebook."""
    with _one_at_a_time:
        return _finished(task, grade_submission(task.submission, task.conditions))


def run_task_on_stranger(task: Task, graders: dict[str, str], trusted: bool) -> TaskResult:
    """Grade one submission on a machine of a cluster. The machine is tested before its first task."""
    with _one_at_a_time:
        exercise = task.submission.exercise
        if exercise in graders:
            task = replace(task, conditions=_proved(exercise, graders[exercise], trusted, task.conditions))
        return run_task(task)


@cache
def _proved(exercise: str, wanted: str, trusted: bool, conditions: Conditions) -> Conditions:
    """Check that this machine has the same grader and a sound sandbox. Returns the conditions on this machine."""
    guarantees.demand_linux()
    if grader(exercise) != wanted:
        raise Unfinished(
            f"{platform.node()} has another version of the course or of its libraries; install the same everywhere",
            f"{platform.node()} 上的课程或依赖库版本不同；请在所有机器上安装同一版本",
        )
    here = replace(conditions, may_lack=accepted_layers(conditions.device, trusted))
    control(exercise, here)
    return here


def accepted_layers(device: str, trusted: bool) -> frozenset[str] | None:
    """The layers that students' processes may lack here: those that this machine lacks. None if submissions are trusted.

    Raises `UntrustedMachine` if a guarantee does not hold without these layers.
    """
    if trusted:
        return None
    missing = missing_layers(device)
    guarantees.demand(missing)
    return frozenset(missing)


def missing_layers(device: str) -> dict[str, str]:
    """Start a process without student code and return the layers it lacks, with the reasons."""
    limits = next(iter(catalogue().values())).limits
    process = StudentProcess.spawn(shared(device), limits)
    process.end()
    return process.missing_layers


def control(exercise: str, conditions: Conditions) -> None:
    """Grade the model solution. A machine that rejects it would reject every right answer, so nothing is graded."""
    with _one_at_a_time:
        found = grade_file("control", exercise, solution_path(exercise), conditions).report
    if found.verdict is not Verdict.PASS:
        failed = [part for part in found.parts if part.verdict is not Verdict.PASS]
        reasons = Text.each(lambda lang: "\n".join(part.told(lang) for part in failed))
        raise UnsoundGrader(
            f"On this machine the model solution of {exercise} is not accepted, so nothing was graded:\n{reasons.en}",
            f"在这台机器上，{exercise} 的标准解答未能通过，因此没有给任何提交评分：\n{reasons.zh}",
        )


def given_up(task: Task, times: int) -> TaskResult:
    """The result of a task whose worker died at every try: not a pass, and not the student's fault."""
    reason = Broken(
        Verdict.GRADER_ERROR,
        f"the worker that graded it was lost {times} times; this is not the student's fault. Run the same command again",
        f"负责评分的工作进程 {times} 次意外终止，不是学生的问题。请再次运行同一命令",
    )
    return _finished(task, refused(task.submission, catalogue().get(task.submission.exercise), reason))


def _finished(task: Task, graded: Graded) -> TaskResult:
    exercise = catalogue().get(task.submission.exercise)
    if exercise is None:
        return TaskResult(graded.report, None)
    script = None
    if task.submission.path and task.submission.path.suffix == ".py" and graded.cells:
        script = "\n".join(run.cell.source for run in graded.cells)
    notebook = returned.filled(exercise, graded.report, graded.cells, graded.notebook, script, task.lang)
    return TaskResult(graded.report, nbformat.v4.writes(notebook))
