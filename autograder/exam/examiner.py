"""Run an exercise's suite against a student and score each part.

A suite is a module of plain test functions. pytest runs them through our plugin (`grading/pytest_plugin.py`); here they are
called directly, because pytest's start-up takes longer than most tests. Verdicts are made here, on the trusted side.
Nothing that the student's process sends can be a verdict.
"""

import contextlib
import importlib
import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from autograder.catalogue import Exercise, Part
from autograder.verdicts import Broken, Verdict

from .promises import Draw, Promise, promise_of
from .proxy import Exchange, Student

SUITES = "autograder.suites"
GIVEN = {"student", "draw"}  # what a test may ask for


@dataclass
class Outcome:
    """The result of one promise. `broken` is None when it was kept."""

    test: str
    promise: Promise
    broken: Broken | None
    exchanges: list[Exchange] = field(default_factory=list, repr=False)


@dataclass
class PartResult:
    """The results of all promises of one part."""

    part: Part
    outcomes: list[Outcome]

    @property
    def first_broken(self) -> Outcome | None:
        return next((outcome for outcome in self.outcomes if outcome.broken), None)

    @property
    def verdict(self) -> Verdict:
        verdicts = [outcome.broken.verdict for outcome in self.outcomes if outcome.broken]
        if Verdict.GRADER_ERROR in verdicts:
            return Verdict.GRADER_ERROR
        return verdicts[0] if verdicts else Verdict.PASS

    @property
    def score(self) -> float:
        """The points of the kept promises. A part that uses forbidden functions gets nothing, even if it is right."""
        if any(o.broken and o.broken.verdict is Verdict.POLICY for o in self.outcomes):
            return 0.0
        kept = sum(o.promise.weight for o in self.outcomes if not o.broken)
        return round(self.part.points * kept / sum(o.promise.weight for o in self.outcomes), 2)


@dataclass(frozen=True)
class PromiseTest:
    """A test function of a suite, and the promise it tests."""

    name: str
    function: Callable[..., None]
    promise: Promise
    arguments: tuple[str, ...]

    def run(self, student: Student, salt: str) -> Broken | None:
        """Call the test as pytest does. Any exception other than `Broken` is a fault of the grader."""
        given: dict[str, Any] = {"student": student, "draw": Draw(self.name, salt)}
        try:
            self.function(**{name: given[name] for name in self.arguments})
        except Broken as broken:
            return broken
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # pytest's own exceptions too, such as a skip
            where = f"{self.function.__module__}.{self.name}"
            return Broken(
                Verdict.GRADER_ERROR,
                f"the grader failed in {where}: {type(fault).__name__}: {fault}",
                f"评分程序在 {where} 中出错：{type(fault).__name__}: {fault}",
            )
        return None


class Examination:
    """One exercise's suite, ready to be run against any number of students."""

    def __init__(self, exercise: Exercise, suite: types.ModuleType | None = None):
        self.exercise = exercise
        self.tests = _collect(suite or importlib.import_module(f"{SUITES}.test_{exercise.name}"), exercise)
        self.reference = importlib.import_module(f"autograder.reference.{exercise.module}")
        names = [part.name for part in exercise.parts]
        self.right = {name: getattr(self.reference, name) for name in names if hasattr(self.reference, name)}

    def examine(self, student: Student, salt: str = "", parts: Iterable[Part] | None = None) -> list[PartResult]:
        """Run the promises of `parts` (default: all) and return their results."""
        with one_thread():
            return [self._examine_part(part, student, salt) for part in parts or self.exercise.parts]

    def outcome(self, test: str, student: Student, salt: str) -> Outcome:
        """Run one promise by the name of its test."""
        found = self.tests[test]
        student.begin(self.exercise.part(found.promise.part))
        return Outcome(test, found.promise, found.run(student, salt), student.exchanges)

    def _examine_part(self, part: Part, student: Student, salt: str) -> PartResult:
        outcomes: list[Outcome] = []
        lost = None
        for test in self.tests.values():
            if test.promise.part == part.name:
                outcomes.append(
                    Outcome(test.name, test.promise, lost) if lost else self.outcome(test.name, student, salt)
                )
                lost = lost or ends_the_part(outcomes[-1].broken)
        return PartResult(part, outcomes)


def ends_the_part(broken: Broken | None) -> Broken | None:
    """`broken`, if no further promise of the part can be tested after it."""
    return broken if broken is not None and (broken.fatal or broken.verdict is Verdict.MISSING) else None


def _collect(suite: types.ModuleType, exercise: Exercise) -> dict[str, PromiseTest]:
    """The tests of a suite by name, in the order of the file, as pytest would find them."""
    names = {part.name for part in exercise.parts}
    tests = {}
    for name, function in vars(suite).items():
        if not name.startswith("test") or not inspect.isfunction(function):
            continue
        where = f"{suite.__name__}.{name}"
        promise = promise_of(function)
        if promise is None or promise.part not in names:
            raise LookupError(f"{where}: not marked as a promise of a part of {exercise.name}")
        arguments = tuple(inspect.signature(function).parameters)
        if others := set(arguments) - GIVEN:
            raise LookupError(f"{where}: takes {', '.join(sorted(others))}; there are {', '.join(sorted(GIVEN))}")
        tests[name] = PromiseTest(name, function, promise, arguments)
    if untested := names - {test.promise.part for test in tests.values()}:
        raise LookupError(f"{exercise.name}: no promise about {', '.join(sorted(untested))}")
    return tests


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute in one thread: the tensors are small, and sums must give the same result on every machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@cache
def examination(exercise: Exercise) -> Examination:
    return Examination(exercise)
