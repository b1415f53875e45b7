"""What is on record about the known mistakes: the promises that each of them breaks when a learner checks.

A learner's checks always draw the same inputs, so this never changes until a suite, a reference or a mistake does. With it
a diagnosis need not try what it already knows to be kept, which may be dozens of long promises. The audit compares the
record with what happens; to make it anew:

    python -m autograder.recorded 06_masks
"""

import json
import sys
from functools import cache
from pathlib import Path

import torch

from .catalogue import Exercise, catalogue
from .examiner import Outcome, PartResult, examination
from .mistakes import Mistake, mistakes_of
from .proxy import Local, Student

FOLDER = Path(__file__).parent / "symptoms"
LEARNERS_SALT = ""  # when marks count there is another, and nothing about it is on record


@cache
def symptoms(exercise: Exercise) -> dict[str, dict[str, list]]:
    """By mistake and by test that it fails in a learner's check: the verdict, and after how many questions.

    Empty for an exercise that has no record yet.
    """
    path = FOLDER / f"{exercise.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def sits(exercise: Exercise, mistake: Mistake, salt: str) -> PartResult:
    """How a mistake fares when it is handed in for its part. What draws from the generator that all share draws the same."""
    exam = examination(exercise)
    student = Student(Local(exam.right | {mistake.part: mistake.answer}))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return exam.examine(student, salt, [exercise.part(mistake.part)])[0]


def broken_by(result: PartResult) -> dict[str, list]:
    return {outcome.test: how(outcome) for outcome in result.outcomes if outcome.broken}


def how(broken: Outcome) -> list:
    """What two answers that break a promise in the same way have in common before any number is compared."""
    return [broken.broken.verdict.value, len(broken.exchanges)]


def record(exercise: Exercise) -> bool:
    """Try every mistake and write down what it breaks. Whether that is news."""
    before = symptoms(exercise)
    found = {m.name: broken_by(sits(exercise, m, LEARNERS_SALT)) for m in mistakes_of(exercise.module)}
    lines = [f"{json.dumps(name)}: {json.dumps(broken)}" for name, broken in found.items()]
    (FOLDER / f"{exercise.name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return found != before


def main(names: list[str]) -> None:
    for name in names or catalogue():
        if name not in catalogue():
            raise SystemExit(f"no exercise is called {name!r}; there are {', '.join(catalogue())}")
        print(f"{name}: {'recorded' if record(catalogue()[name]) else 'unchanged'}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
