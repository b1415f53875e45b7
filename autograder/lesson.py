"""Check one part of a learner's own work, and say all that helps to learn from it.

Unlike a graded report this shows inputs, answers and tracebacks: it is made in the learner's own process, about the
learner's own code.
"""

import inspect

import torch

from . import evidence, heatmap, progress
from .catalogue import Exercise, Part
from .examiner import PartResult, examination, one_thread
from .findings import report
from .hinting import afterwards
from .mistakes import mistakes_of
from .proxy import Student
from .recorded import LEARNERS_SALT
from .sections import section
from .smallest import smallest
from .usererror import OwnNotebook
from .verdicts import Broken, Verdict

MOST_NUMBERS = 12  # in an input that is shown in full
MOST_LINES = 24  # of a traceback: endless recursion has thousands
FAILED_LINE = "---->"  # what `usererror` puts before the line that failed


class Stoppable(OwnNotebook):
    """An interrupt ends the whole check, not one promise of many."""

    def __init__(self, namespace: dict, part: Part):
        super().__init__(namespace)
        self.part = part

    def ask(self, request: dict) -> dict:
        answer = super().ask(request)
        if isinstance(self.performer.raised, KeyboardInterrupt):
            raise Broken(
                Verdict.TIMEOUT,
                f"{self.part.name}: you stopped it before it answered: does it loop for ever?",
                f"{self.part.name}：还没有回答就被你停下了：是不是死循环？",
                fatal=True,
            )
        return answer


def learn(exercise: Exercise, part: Part, namespace: dict) -> dict:
    """What `report` tells about a part, and under «lesson» what it was seen on, where to read and how to go on."""
    transport = Stoppable(namespace, part)
    student = Student(transport)
    with evidence.kept():
        result = examination(exercise).examine(student, LEARNERS_SALT, [part])[0]
    told = report(exercise, result, LEARNERS_SALT)
    progress.record(exercise, told)
    if result.first_broken is None:
        told["lesson"] = {"afterwards": _afterwards(exercise, part)}
    else:
        with one_thread():
            told["lesson"] = _about_the_first_failure(exercise, result, told, student, transport)
    return told


def _about_the_first_failure(
    exercise: Exercise, result: PartResult, told: dict, student: Student, transport: OwnNotebook
) -> dict:
    first = result.first_broken
    mistake = next((m.text for m in mistakes_of(exercise.module) if m.name == told["mistake"]), None)
    lesson = {"message": first.broken.message, "mistake": mistake, "section": section(exercise, result.part)}
    if result.verdict is Verdict.MISSING:
        if result.part.name not in transport.performer.namespace:
            lesson["message"] = _undefined(result.part)
    elif result.verdict is Verdict.TIMEOUT:
        lesson["traceback"] = _shortened(transport.last_error())
    elif result.verdict is Verdict.ERROR:
        examination(exercise).outcome(first.test, student, LEARNERS_SALT)  # once more, to catch it in the act
        traceback = transport.last_error()
        if FAILED_LINE in traceback:  # otherwise it never came as far as the learner's own lines
            lesson |= {"message": _stopped(result.part), "traceback": _shortened(traceback)}
    elif first.broken.evidence is not None:
        with evidence.kept():
            seen = smallest(student, result.part, first.broken.evidence)
        lesson |= {"message": seen.message, "inputs": _inputs(seen)}
        if seen.yours is not None:
            lesson["yours"] = heatmap.view(seen.yours, seen.worst)
            lesson["expected"] = heatmap.view(seen.expected, seen.worst)
    return lesson


def _undefined(part: Part) -> dict[str, str]:
    return {
        "en": f"{part.name}: not defined here. Run the cell that defines it, then check again",
        "zh": f"{part.name}：这里还没有定义。请先运行定义它的单元，再来检查",
    }


def _stopped(part: Part) -> dict[str, str]:
    return {"en": f"{part.name}: your code stopped here", "zh": f"{part.name}：你的代码停在这里"}


def _shortened(traceback: str) -> str:
    """The outermost and the innermost lines, without the colon of an error that says nothing."""
    lines = traceback.removesuffix(": ").split("\n")
    if len(lines) > MOST_LINES:
        lines[MOST_LINES // 2 : -MOST_LINES // 2] = ["…"]
    return "\n".join(lines)


def _inputs(seen: evidence.Evidence) -> str:
    """`masked_attention(q=[2, 3], mask=[[1, 0], [1, 1]])`: numbers where they are few, shapes where they are many."""
    try:
        given = inspect.signature(seen.formula).bind(*seen.args, **seen.kwargs).arguments
    except (TypeError, ValueError):
        given = dict(enumerate(seen.args)) | seen.kwargs
    function = getattr(seen.formula, "formula", seen.formula)
    return f"{function.__name__}({', '.join(f'{name}={_shown(value)}' for name, value in given.items())})"


def _shown(value) -> str:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    if value.numel() > MOST_NUMBERS:
        return f"tensor {list(value.shape)}"

    def rows(part):
        return f"[{', '.join(map(rows, part))}]" if isinstance(part, list) else heatmap.number(part)

    return rows(value.detach().tolist())


def _afterwards(exercise: Exercise, part: Part) -> dict:
    """When every part is right: why it works and what to try next. Before that: the part that comes next."""
    done = progress.load().get(exercise.name, {})
    open_parts = [p.name for p in exercise.parts if p is not part and done.get(p.name, {}).get("verdict") != "pass"]
    return {"open": open_parts} if open_parts else {"open": [], **afterwards(exercise)}
