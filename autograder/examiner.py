"""Run an exercise's suite against a student and say what each part is worth.

The suite is collected by pytest once and its tests are run many times, for pytest's start-up would cost more than
the tests. A verdict is made here, on the trusted side, from what came back; nothing the student says can be one.
"""

import contextlib
import importlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
import torch
from _pytest.config import _prepareconfig
from _pytest.main import Session
from _pytest.outcomes import OutcomeException

from . import suites
from .catalogue import Exercise, Part
from .promises import Draw, Promise
from .proxy import Exchange, Student
from .verdicts import Broken, Verdict

SUITES = Path(suites.__file__).parent
GIVEN = {"student", "draw"}  # what a test may ask for


@dataclass
class Outcome:
    """One promise: kept, or broken and how."""

    test: str
    promise: Promise
    broken: Broken | None
    exchanges: list[Exchange] = field(default_factory=list, repr=False)


@dataclass
class PartResult:
    part: Part
    outcomes: list[Outcome]

    @property
    def first_broken(self) -> Outcome | None:
        return next((outcome for outcome in self.outcomes if outcome.broken), None)

    @property
    def verdict(self) -> Verdict:
        if any(o.broken and o.broken.verdict is Verdict.GRADER_ERROR for o in self.outcomes):
            return Verdict.GRADER_ERROR
        return self.first_broken.broken.verdict if self.first_broken else Verdict.PASS

    @property
    def score(self) -> float:
        """Points per promise kept. Help that is forbidden earns nothing, however right."""
        if any(o.broken and o.broken.verdict is Verdict.POLICY for o in self.outcomes):
            return 0.0
        kept = sum(o.promise.weight for o in self.outcomes if not o.broken)
        return round(self.part.points * kept / sum(o.promise.weight for o in self.outcomes), 2)


class Examination:
    """One exercise's suite, ready to be run against any number of students."""

    def __init__(self, exercise: Exercise):
        self.exercise = exercise
        self.items = _collect(SUITES / f"test_{exercise.name}.py")
        self.reference = importlib.import_module(f"autograder.reference.{exercise.module}")
        names = [part.name for part in exercise.parts]
        self.right = {name: getattr(self.reference, name) for name in names if hasattr(self.reference, name)}
        for item in self.items:
            if getattr(item.function, "promise", None) is None or item.function.promise.part not in names:
                raise LookupError(f"{item.nodeid}: not marked as a promise of a part of {exercise.name}")
            if others := set(item._fixtureinfo.argnames) - GIVEN:
                raise LookupError(
                    f"{item.nodeid}: takes {', '.join(sorted(others))}; there are {', '.join(sorted(GIVEN))}"
                )
        if untested := set(names) - {item.function.promise.part for item in self.items}:
            raise LookupError(f"{exercise.name}: no promise about {', '.join(sorted(untested))}")

    def examine(self, student: Student, salt: str = "", parts=None) -> list[PartResult]:
        """Run the promises of `parts` (default: all) and collect what was kept."""
        with one_thread():
            return [self._examine_part(part, student, salt) for part in parts or self.exercise.parts]

    def outcome(self, test: str, student: Student, salt: str) -> Outcome:
        """Run one promise by the name of its test."""
        item = next(item for item in self.items if item.name == test)
        student.begin(self.exercise.part(item.function.promise.part))
        return Outcome(item.name, item.function.promise, self._run(item, student, salt), student.exchanges)

    def _examine_part(self, part, student, salt) -> PartResult:
        outcomes, lost = [], None
        for item in self.items:
            if item.function.promise.part != part.name:
                continue
            if lost is not None:
                outcomes.append(Outcome(item.name, item.function.promise, lost))
                continue
            outcomes.append(self.outcome(item.name, student, salt))
            broken = outcomes[-1].broken
            if broken is not None and (broken.fatal or broken.verdict is Verdict.MISSING):
                lost = broken
        return PartResult(part, outcomes)

    def _run(self, item, student, salt) -> Broken | None:
        """Run one test as pytest does, without its set-up and reports, which take longer than most tests."""
        given = {"student": student, "draw": Draw(item.name, salt)}
        item.funcargs = {name: given[name] for name in item._fixtureinfo.argnames}
        try:
            item.ihook.pytest_pyfunc_call(pyfuncitem=item)
        except Broken as broken:
            return broken
        except (Exception, OutcomeException) as fault:
            return Broken(
                Verdict.GRADER_ERROR,
                f"the grader failed in {item.nodeid}: {type(fault).__name__}: {fault}",
                f"评分程序在 {item.nodeid} 中出错：{type(fault).__name__}: {fault}",
            )
        return None


@contextlib.contextmanager
def one_thread():
    """Compute in one thread: the tensors are small, and the same sums must be made everywhere."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@cache
def examination(exercise: Exercise) -> Examination:
    return Examination(exercise)


def _collect(path: Path) -> list[pytest.Item]:
    quiet = ["cacheprovider", "terminal", "capture", "logging", "warnings", "faulthandler", "unraisableexception",
             "threadexception", "junitxml", "doctest", "pastebin", "debugging", "stepwise", "setupplan"]  # fmt: skip
    options = [
        "-c",
        str(path.with_name("pytest.ini")),
        "--rootdir",
        str(path.parent),
        "--assert=plain",
        "--import-mode=importlib",
    ]
    for name in quiet:
        options += ["-p", f"no:{name}"]
    config = _prepareconfig([*options, "--disable-plugin-autoload", str(path)])
    config._do_configure()
    session = Session.from_config(config)
    config.hook.pytest_sessionstart(session=session)
    with contextlib.suppress(KeyboardInterrupt):
        session.perform_collect()
    if not session.items:
        raise LookupError(f"{path}: no tests were collected")
    return session.items
