"""The work of one worker, wherever it runs: here, in a process of a pool, or on another machine.

A task is plain data that carries the submission's content, and so is what comes back.
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
TRIES = 3  # how often a task is given to a worker that dies

_one_at_a_time = threading.RLock()  # a cluster's worker may have several threads; the examiner is made for one


@dataclass(frozen=True)
class Task:
    key: str
    submission: Submission  # loaded: its content travels
    conditions: Conditions
    lang: str


@dataclass(frozen=True)
class TaskResult:
    report: SubmissionReport
    notebook: str | None  # the autograded notebook; None when no exercise is called so


class Lost:
    """Given in place of a value when the worker died at every try."""

    tries = TRIES


class Crew(Protocol):
    """Runs a function on tasks, several at a time: processes of this machine or a cluster."""

    def map(
        self, function: Callable[[T], Any], tasks: Iterable[T], meanwhile: Callable[[], None] = ...
    ) -> Iterator[tuple[T, Any]]:
        """Each task with what the function made of it, or `Lost`, in the order in which they are done.

        `meanwhile` is done here, once, while the workers do the first tasks.
        """
        ...


class UnsoundGrader(UserError):
    """The grader fails a solution that is known to be right; it must not judge anybody."""


def run_task(task: Task) -> TaskResult:
    """Grade one submission and make its autograded notebook."""
    with _one_at_a_time:
        return _finished(task, grade_submission(task.submission, task.conditions))


def run_task_on_stranger(task: Task, graders: dict[str, str], trusted: bool) -> TaskResult:
    """The same on a machine that nobody has looked at yet. It proves itself before it judges."""
    with _one_at_a_time:
        exercise = task.submission.exercise
        if exercise in graders:
            task = replace(task, conditions=_proved(exercise, graders[exercise], trusted, task.conditions))
        return run_task(task)


@cache
def _proved(exercise: str, wanted: str, trusted: bool, conditions: Conditions) -> Conditions:
    """The conditions on this machine, once it has shown that it is the same grader and that its sandbox holds."""
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
    """The layers that students' processes may lack here: None when submissions are trusted, else those that this machine
    lacks although every guarantee holds. Raises `UntrustedMachine` when a guarantee does not hold.
    """
    if trusted:
        return None
    missing = missing_layers(device)
    guarantees.demand(missing)
    return frozenset(missing)


def missing_layers(device: str) -> dict[str, str]:
    """Start a process without student code and ask which layers do not hold."""
    limits = next(iter(catalogue().values())).limits
    process = StudentProcess.spawn(shared(device), limits)
    process.end()
    return process.missing_layers


def control(exercise: str, conditions: Conditions) -> None:
    """Grade the model solution. A machine on which it fails would fail everybody, so it must not judge."""
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
    """The result of a task whose worker died every time: never a pass, and never the student's fault."""
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
