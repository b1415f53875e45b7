"""Let stock pytest run a suite on a submission, in the sandbox.

    pytest autograder/suites/test_06_masks.py --submission FILE.ipynb [--device cpu] [--salt S] [--lang zh]

Each test is one promise. The fixtures `student` and `draw` are what the class engine gives to the same functions, so both
ways come to the same verdicts. Without `--submission` the model solution is examined. A failure shows what was seen, the
promise it broke, the mistake by its name and where to read. The verdict and the mistake are also in `--junitxml`.

`autograder/suites/conftest.py` loads this plugin. For suites elsewhere: `pytest -p autograder.grading.pytest_plugin FILE`.
"""

import os
import warnings
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest

from autograder.catalogue import Exercise, Part, find
from autograder.course import solution_path
from autograder.errors import UserError
from autograder.exam.examiner import ends_the_part, examination, one_thread
from autograder.exam.part_report import not_examined, report
from autograder.exam.promises import Draw, Promise, promise_of
from autograder.exam.proxy import Student
from autograder.intake.submission import Submission, read
from autograder.isolation import guarantees, zygote
from autograder.isolation.device import resolve
from autograder.isolation.session import StudentSession
from autograder.language import LANGUAGES, preferred
from autograder.results import NamedMistake, PartReport
from autograder.sections import section
from autograder.verdicts import Broken, Verdict

from .grade import Conditions, missing_part
from .task import accepted_layers

CONDITIONS = pytest.StashKey[Conditions]()
EXAMINEES = pytest.StashKey[dict[str, "Examinee"]]()
CAN_BE_NAMED = (Verdict.WRONG, Verdict.ERROR, Verdict.POLICY)


class Examinee:
    """One submission to one exercise, for as long as pytest runs."""

    def __init__(self, exercise: Exercise, path: Path, conditions: Conditions):
        self.exercise, self.conditions = exercise, conditions
        self.lost: dict[str, Broken] = {}  # by part: why no further promise of it can be asked
        self.unreadable: Broken | None = None
        try:
            self.cells = read(Submission("submission", exercise.name, path), exercise)[0]
        except Broken as unreadable:
            self.cells, self.unreadable = [], unreadable
        self.session = self._new_session()
        self.student = Student(self.session)
        self._mistakes: dict[str, NamedMistake | None] = {}

    def _new_session(self) -> StudentSession:
        shared = zygote.shared(self.conditions.device)
        return StudentSession(shared, self.exercise, self.cells, self.conditions.may_lack)

    @cached_property
    def present(self) -> dict[str, str | None]:
        """By part, what its name stands for; None when it is not defined."""
        return self.student.defined([part.name for part in self.exercise.parts]) if self.cells else {}

    def cannot_be_asked(self, promise: Promise) -> PartReport | None:
        """Why this promise cannot be asked, if so. Otherwise the student is ready for it."""
        part = self.exercise.part(promise.part)
        broken = self.unreadable or self.lost.get(part.name) or missing_part(part, self.session, self.present)
        if broken:
            return not_examined(part, broken)
        self.student.begin(part)
        return None

    def explain(self, promise: Promise, broken: Broken) -> PartReport:
        """What is told about one broken promise."""
        part = self.exercise.part(promise.part)
        if lost := ends_the_part(broken):
            self.lost[part.name] = lost
        return PartReport(
            part.name,
            0.0,
            part.points,
            broken.verdict,
            message=broken.message,
            broken=promise.text if broken.verdict is Verdict.WRONG else None,
            mistake=self._mistake(part) if broken.verdict in CAN_BE_NAMED else None,
            section=None if broken.verdict is Verdict.MISSING else section(self.exercise, part),
        )

    def _mistake(self, part: Part) -> NamedMistake | None:
        """The mistake behind this part, from all of its promises: asked in a session of their own, once."""
        if part.name not in self._mistakes:
            with self._new_session() as session:
                result = examination(self.exercise).examine(Student(session), self.conditions.salt, [part])[0]
            self._mistakes[part.name] = report(self.exercise, result, self.conditions.salt).mistake
        return self._mistakes[part.name]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograder", "Attention by Hand")
    group.addoption(
        "--submission", metavar="FILE", type=Path, help="notebook or script to examine (default: the solution)"
    )
    group.addoption("--device", default="cpu", choices=("cpu", "cuda", "mps", "auto"), help="where to compute")
    group.addoption("--salt", help="what the inputs are drawn from (default: AUTOGRADER_SALT, or a learner's inputs)")
    group.addoption("--lang", choices=LANGUAGES, help="language of the failures (default: the locale)")
    group.addoption("--trust-submissions", action="store_true", help="run although the sandbox is incomplete")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--submission")
    if path is not None and not path.is_file():
        raise pytest.UsageError(f"--submission {path}: no such file")


def pytest_sessionfinish(session: pytest.Session) -> None:
    for examinee in session.config.stash.get(EXAMINEES, {}).values():
        examinee.session.close()


@pytest.fixture
def student(request: pytest.FixtureRequest) -> Student:
    """The submission's functions and classes."""
    return _examinee(request.config, request.node).student


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> Draw:
    """Random inputs for this promise."""
    return Draw(request.node.originalname, _conditions(request.config).salt)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Run one promise, and turn what it broke into a failure that a person can read."""
    promise = promise_of(pyfuncitem.function)
    if promise is None:
        return (yield)
    examinee = _examinee(pyfuncitem.config, pyfuncitem)
    told = examinee.cannot_be_asked(promise)
    if told is None:
        try:
            with warnings.catch_warnings(), one_thread():
                warnings.simplefilter("default")  # a warning of the reference is not the student's failure
                return (yield)
        except Broken as broken:
            told = examinee.explain(promise, broken)
    mistake = [("mistake", told.mistake.name)] if told.mistake else []
    pyfuncitem.user_properties += [("verdict", str(told.verdict)), *mistake]
    pytest.fail(told.told(preferred(pyfuncitem.config.getoption("--lang"))), pytrace=False)


def _examinee(config: pytest.Config, item: pytest.Function) -> Examinee:
    """The submission to the exercise that this test belongs to."""
    known = config.stash.setdefault(EXAMINEES, {})
    name = item.path.stem.removeprefix("test_")
    if name not in known:
        exercise = find(name)
        path = config.getoption("--submission") or solution_path(exercise.name)
        known[name] = Examinee(exercise, path, _conditions(config))
    return known[name]


def _conditions(config: pytest.Config) -> Conditions:
    if CONDITIONS not in config.stash:
        salt = config.getoption("--salt")
        salt = os.environ.get("AUTOGRADER_SALT", "") if salt is None else salt
        try:
            guarantees.demand_linux()
            device = resolve(config.getoption("--device"))
            config.stash[CONDITIONS] = Conditions(
                salt, device, accepted_layers(device, config.getoption("--trust-submissions"))
            )
        except UserError as error:
            pytest.exit(error.message[preferred(config.getoption("--lang"))], returncode=pytest.ExitCode.USAGE_ERROR)
    return config.stash[CONDITIONS]
