"""Check one part of a learner's own work, and show everything that helps to learn from it.

Unlike a graded report this shows inputs, answers and tracebacks, because it runs in the learner's own process.
"""

import inspect
from typing import Any

import torch

from autograder.catalogue import Exercise, Part
from autograder.exam import evidence
from autograder.exam.examiner import PartResult, examination, one_thread
from autograder.exam.part_report import report
from autograder.exam.proxy import Student
from autograder.exam.symptoms import LEARNERS_SALT
from autograder.hints import afterwards
from autograder.language import Text
from autograder.reports import heatmap
from autograder.results import Failure, Lesson, PartReport
from autograder.sections import section
from autograder.verdicts import Verdict

from . import progress
from .shrink import smallest
from .traceback import FAILED_LINE, shortened
from .transport import NotebookTransport

MOST_NUMBERS = 12  # in an input that is shown in full


def check_part(exercise: Exercise, part: Part, namespace: dict[str, Any]) -> Lesson:
    """The report on a part, the evidence for its first failure, where to read and what to do next."""
    transport = NotebookTransport(namespace, part)
    student = Student(transport)
    with evidence.kept():
        result = examination(exercise).examine(student, LEARNERS_SALT, [part])[0]
    found = report(exercise, result, LEARNERS_SALT)
    progress.record(exercise, found)
    if result.first_broken is None:
        return _lesson_when_right(exercise, part, found)
    with one_thread():
        return Lesson(found, _failure(exercise, result, found, student, transport))


def _lesson_when_right(exercise: Exercise, part: Part, found: PartReport) -> Lesson:
    """The parts that are still open; if there are none, why it works and what to try next."""
    done = progress.load().get(exercise.name, {})
    still_open = [p.name for p in exercise.parts if p is not part and done.get(p.name, {}).get("verdict") != "pass"]
    if still_open:
        return Lesson(found, still_open=tuple(still_open))
    return Lesson(found, afterwards=afterwards(exercise))


def _failure(
    exercise: Exercise, result: PartResult, found: PartReport, student: Student, transport: NotebookTransport
) -> Failure:
    """What is shown about the first broken promise."""
    part, first = result.part, result.first_broken
    assert first is not None
    assert first.broken is not None
    where, mistake = section(exercise, part), found.mistake.text if found.mistake else None
    message, traceback, seen = first.broken.message, "", None
    if result.verdict is Verdict.MISSING:
        message = message if transport.defines(part.name) else _undefined(part)
    elif result.verdict is Verdict.TIMEOUT:
        traceback = shortened(transport.last_traceback())
    elif result.verdict is Verdict.ERROR:
        examination(exercise).outcome(
            first.test, student, LEARNERS_SALT
        )  # again, because only the last traceback is kept
        found_at = transport.last_traceback()
        if FAILED_LINE in found_at:  # a line of the learner's own code failed
            message, traceback = _stopped(part), shortened(found_at)
    elif first.broken.evidence is not None:
        with evidence.kept():
            seen = smallest(student, part, first.broken.evidence)
    if seen is None:
        return Failure(message, where, mistake, traceback)
    if seen.yours is None or seen.expected is None:
        return Failure(seen.message, where, mistake, inputs=_inputs(seen))
    yours, expected = (heatmap.excerpt(side, seen.worst) for side in (seen.yours, seen.expected))
    return Failure(seen.message, where, mistake, inputs=_inputs(seen), yours=yours, expected=expected)


def _undefined(part: Part) -> Text:
    return Text(
        f"{part.name}: not defined here. Run the cell that defines it, then check again",
        f"{part.name}：这里还没有定义。请先运行定义它的单元，再来检查",
    )


def _stopped(part: Part) -> Text:
    return Text(f"{part.name}: your code stopped here", f"{part.name}：你的代码停在这里")


def _inputs(seen: evidence.Evidence) -> str:
    """Such as `masked_attention(q=[2, 3], mask=[[1, 0], [1, 1]])`. Large tensors are shown as shapes."""
    assert seen.formula is not None
    function = getattr(seen.formula, "formula", seen.formula)  # gradients are shown with the function they belong to
    given: dict[Any, Any] = {}
    try:
        signature = inspect.signature(function)
        for name, value in signature.bind(*seen.args, **seen.kwargs).arguments.items():
            given |= value if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    except (TypeError, ValueError):
        given = {**dict(enumerate(seen.args)), **seen.kwargs}
    called = getattr(function, "shown_as", function.__name__)
    return f"{called}({', '.join(f'{name}={_shown(value)}' for name, value in given.items())})"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {_shown(item)}' for name, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if not isinstance(value, torch.Tensor):
        return repr(value)
    if value.numel() > MOST_NUMBERS:
        return f"tensor {list(value.shape)}"

    def rows(part: Any) -> str:
        return f"[{', '.join(map(rows, part))}]" if isinstance(part, list) else heatmap.number(part)

    return rows(value.detach().tolist())
