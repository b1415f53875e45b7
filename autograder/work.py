"""The work of one worker, wherever it runs: here, in a process of a pool, or on another machine.

A task is plain data that carries the submission's content, and so is what comes back.
"""

import platform
import threading
from dataclasses import dataclass
from functools import cache

import nbformat.v4

from . import autograded, trust
from .catalogue import catalogue
from .course import SOLUTIONS, course_root
from .fingerprint import grader
from .grading import grade, grade_submission, refused
from .language import LANGUAGES
from .submission import Submission
from .told import Told, Unfinished
from .verdicts import Broken, Verdict
from .zygote import shared

_one_at_a_time = threading.RLock()  # the examiner is one pytest session; a cluster's worker may have several threads


@dataclass(frozen=True)
class Task:
    key: str
    submission: Submission  # loaded: its content travels
    salt: str
    device: str
    lang: str


@dataclass(frozen=True)
class Outcome:
    result: dict
    notebook: str | None  # the autograded notebook; None when no exercise is called so


class UnsoundGrader(Told):
    """The grader fails a solution that is known to be right; it must not judge anybody."""


def work(task: Task) -> Outcome:
    """Grade one submission and make its autograded notebook."""
    with _one_at_a_time:
        return _outcome(task, grade_submission(task.submission, task.salt, task.device))


def work_anywhere(task: Task, graders: dict[str, str], trusted: bool) -> Outcome:
    """The same on a machine that nobody has looked at yet. It proves itself before it judges."""
    with _one_at_a_time:
        if task.submission.exercise in graders:
            _prove(task.submission.exercise, graders[task.submission.exercise], trusted, task.salt, task.device)
        return work(task)


@cache
def _prove(exercise: str, wanted: str, trusted: bool, salt: str, device: str) -> None:
    trust.demand_linux()
    if grader(exercise) != wanted:
        raise Unfinished(
            f"{platform.node()} has another version of the course or of its libraries; install the same everywhere",
            f"{platform.node()} 上的课程或依赖库版本不同；请在所有机器上安装同一版本",
        )
    if not trusted:
        trust.demand(missing_layers(device))
    control(exercise, salt, device)


def given_up(task: Task, times: int) -> Outcome:
    """The outcome of a task whose worker died every time: never a pass, and never the student's fault."""
    reason = Broken(
        Verdict.GRADER_ERROR,
        f"the worker that graded it was lost {times} times; this is not the student's fault. Run the same command again",
        f"负责评分的工作进程 {times} 次意外终止，不是学生的问题。请再次运行同一命令",
    )
    return _outcome(task, refused(task.submission, catalogue().get(task.submission.exercise), reason))


def control(exercise: str, salt: str, device: str) -> None:
    """Grade the model solution. A machine on which it fails would fail everybody, so it must not judge."""
    solution = course_root() / SOLUTIONS / exercise / f"{exercise}.ipynb"
    with _one_at_a_time:
        result = grade("control", exercise, str(solution), salt, device).result
    if result["verdict"] != "pass":
        failed = [part["message"] for part in result["parts"] if part["verdict"] != "pass"]
        reasons = {lang: "\n".join(message[lang] for message in failed) for lang in LANGUAGES}
        raise UnsoundGrader(
            f"On this machine the model solution of {exercise} is not accepted, so nothing was graded:\n{reasons['en']}",
            f"在这台机器上，{exercise} 的标准解答未能通过，因此没有给任何提交评分：\n{reasons['zh']}",
        )


def missing_layers(device: str) -> dict[str, str]:
    """Start a process without student code and ask what holds."""
    limits = next(iter(catalogue().values())).limits
    process = shared(device).spawn(limits)
    process.end()
    return process.missing_layers


def _outcome(task: Task, graded) -> Outcome:
    exercise = catalogue().get(task.submission.exercise)
    if exercise is None:
        return Outcome(graded.result, None)
    script = None
    if task.submission.path and task.submission.path.suffix == ".py" and graded.cells:
        script = "\n".join(cell.source for cell in graded.cells)
    notebook = autograded.filled(exercise, graded, script, task.lang)
    return Outcome(graded.result, nbformat.v4.writes(notebook))
