"""The record of known mistakes: which promises each of them breaks in a learner's check.

A learner's checks always draw the same inputs, so the record stays true until a suite, a reference or a mistake changes.
It saves time: a diagnosis need not run a mistake to know which promises it breaks. `autograder record symptoms` writes
the record, and `audit` compares it with what really happens.
"""

import json
from functools import cache
from pathlib import Path

import torch

from autograder.catalogue import Exercise
from autograder.course import PACKAGE
from autograder.mistakes import Mistake

from .examiner import Outcome, PartResult, examination
from .proxy import Local, Student

FOLDER = PACKAGE / "symptoms"
LEARNERS_SALT = ""  # when marks count the salt is different, and there is no record

Signature = list[str | int]  # how a promise is broken: the verdict, and after how many questions


def record_path(exercise: Exercise) -> Path:
    return FOLDER / f"{exercise.name}.json"


@cache
def symptoms(exercise: Exercise) -> dict[str, dict[str, Signature]]:
    """How each mistake fails each test of a learner's check, by mistake and test. Empty if there is no record yet."""
    path = record_path(exercise)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def examined(exercise: Exercise, mistake: Mistake, salt: str) -> PartResult:
    """Examine one mistake as an answer to its part. The global generator is seeded, so results repeat."""
    exam = examination(exercise)
    student = Student(Local(exam.right | {mistake.part: mistake.answer}))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return exam.examine(student, salt, [exercise.part(mistake.part)])[0]


def broken_by(result: PartResult) -> dict[str, Signature]:
    return {outcome.test: found for outcome in result.outcomes if (found := signature_of(outcome))}


def signature_of(outcome: Outcome) -> Signature:
    """How a promise was broken: the verdict and the number of questions. Empty when the promise is kept."""
    return [outcome.broken.verdict.value, len(outcome.exchanges)] if outcome.broken else []
