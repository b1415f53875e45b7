"""Stock pytest runs the suites on a submission, and comes to the same verdicts as the class engine."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from autograder.catalogue import Exercise, catalogue, find
from autograder.checks.samples import as_script, hand_in, in_as_few_as_possible, solution, with_mistake, with_mistakes
from autograder.course import PACKAGE, released_path, solution_path
from autograder.exam.examiner import examination
from autograder.exam.part_report import report
from autograder.exam.proxy import Student
from autograder.grading.grade import Conditions, missing_part
from autograder.grading.task import accepted_layers
from autograder.intake.submission import Submission, read
from autograder.isolation.session import StudentSession
from autograder.isolation.zygote import shared
from autograder.mistakes import mistakes_of
from autograder.verdicts import Broken

SUITES = PACKAGE / "suites"
SAMPLE_CLASS = Path(__file__).parent / "sample_class"
SALT = "both ways"
EXERCISES = list(catalogue().values())
ROWS_OF_MISTAKES = 2  # submissions per exercise, each wrong in every part at once

Verdicts = dict[str, tuple[str, str | None]]  # by test: the verdict, and the mistake that was named


class Collector:
    """A pytest plugin that keeps what every test came to."""

    def __init__(self):
        self.verdicts: Verdicts = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            told = dict(report.user_properties)
            verdict = "pass" if report.passed else told.get("verdict", "grader_error")
            self.verdicts[report.nodeid.rpartition("::")[2]] = verdict, told.get("mistake")


def by_pytest(exercise: Exercise, path: Path, salt: str = SALT) -> Verdicts:
    """Run pytest in this process: starting one for every file would take longer than the tests."""
    collector = Collector()
    quiet = ["-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist"]
    suite = SUITES / f"test_{exercise.name}.py"
    pytest.main([*quiet, str(suite), f"--submission={path}", f"--salt={salt}"], plugins=[collector])
    return collector.verdicts


def by_the_engine(exercise: Exercise, path: Path, conditions: Conditions) -> Verdicts:
    tests = examination(exercise).tests.values()
    found: Verdicts = {}
    try:
        cells, _ = read(Submission("student", exercise.name, path), exercise)
    except Broken as unreadable:
        return {test.name: (str(unreadable.verdict), None) for test in tests}
    with StudentSession(shared("cpu"), exercise, cells, conditions.may_lack) as session:
        student = Student(session)
        present = student.defined([part.name for part in exercise.parts])
        for part in exercise.parts:
            if broken := missing_part(part, session, present):
                found |= {t.name: (str(broken.verdict), None) for t in tests if t.promise.part == part.name}
                continue
            result = examination(exercise).examine(student, conditions.salt, [part])[0]
            mistake = report(exercise, result, conditions.salt).mistake
            named = mistake.name if mistake else None
            for outcome in result.outcomes:
                verdict = str(outcome.broken.verdict) if outcome.broken else "pass"
                found[outcome.test] = verdict, named if verdict in ("wrong", "error", "policy") else None
    return found


@pytest.fixture(scope="module")
def conditions() -> Conditions:
    return Conditions(SALT, "cpu", accepted_layers("cpu", trusted=False))


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_pytest_and_the_engine_agree_on_every_promise(exercise, conditions, tmp_path):
    """On the model solution, the released notebook, the sample class, and mistakes in every part."""
    files = [solution_path(exercise.name), released_path(exercise.name)]
    files += sorted(SAMPLE_CLASS.glob(f"*/{exercise.name}/{exercise.name}.*"))
    rows = in_as_few_as_possible(mistakes_of(exercise.module))[:ROWS_OF_MISTAKES]
    files += [hand_in(tmp_path, f"row{i}", exercise, with_mistakes(exercise, row)) for i, row in enumerate(rows)]
    for path in files:
        assert by_pytest(exercise, path) == by_the_engine(exercise, path, conditions), path


def test_the_mistakes_compared_are_many():
    rows = [row for e in EXERCISES for row in in_as_few_as_possible(mistakes_of(e.module))[:ROWS_OF_MISTAKES]]
    assert sum(map(len, rows)) >= 100


def run_pytest(*arguments: str | Path) -> subprocess.CompletedProcess:
    """The suite of chapter 6 under stock pytest, in a process of its own, with the project's settings."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        str(SUITES / "test_06_masks.py"),
        *map(str, arguments),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=PACKAGE.parent)


@pytest.fixture(scope="module")
def inverted_mask(tmp_path_factory) -> Path:
    """A notebook whose `masked_attention` takes True for "drop"."""
    exercise = find("06_masks")
    mistake = next(m for m in mistakes_of(exercise.module) if m.name == "inverts_the_mask")
    return hand_in(tmp_path_factory.mktemp("wrong"), "wrong", exercise, with_mistake(exercise, mistake))


@pytest.mark.parametrize("which", [["--submission", solution_path("06_masks")], []], ids=["given", "by default"])
def test_the_solution_passes(which):
    ran = run_pytest(*which)
    assert ran.returncode == 0, ran.stdout
    assert "25 passed" in ran.stdout


@pytest.mark.parametrize(("lang", "title"), [("en", "likely mistake: "), ("zh", "很可能是这个错误：")])
def test_a_mistake_fails_and_is_named(inverted_mask, lang, title):
    exercise = find("06_masks")
    sentence = next(m for m in mistakes_of(exercise.module) if m.name == "inverts_the_mask").text[lang]
    ran = run_pytest("--submission", inverted_mask, "--lang", lang)
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED
    assert title + sentence in ran.stdout
    assert "Traceback" not in ran.stdout
    assert "During handling" not in ran.stdout


def test_junit_has_every_promise_with_verdict_and_mistake(inverted_mask, tmp_path):
    run_pytest("--submission", inverted_mask, "--junitxml", tmp_path / "junit.xml")
    cases = ElementTree.parse(tmp_path / "junit.xml").getroot().findall(".//testcase")
    assert {case.get("name") for case in cases} == set(examination(find("06_masks")).tests)
    failed = [case for case in cases if case.find("failure") is not None]
    assert failed
    for case in failed:
        told = {entry.get("name"): entry.get("value") for entry in case.iter("property")}
        assert told == {"verdict": "wrong", "mistake": "inverts_the_mask"}


def test_pytests_own_switches_work(inverted_mask):
    assert "3 passed, 22 deselected" in run_pytest("--submission", inverted_mask, "-x", "-k", "causal_mask").stdout
    assert "14 passed" in run_pytest("--submission", inverted_mask, "-n", "2").stdout


def test_a_script_is_examined_too(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(as_script(solution(find("06_masks"))))
    assert {verdict for verdict, _ in by_pytest(find("06_masks"), script).values()} == {"pass"}


def test_a_file_that_is_not_there_is_named(tmp_path):
    ran = run_pytest("--submission", tmp_path / "nothing.ipynb")
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "nothing.ipynb: no such file" in ran.stderr


def test_a_damaged_notebook_fails_every_promise(tmp_path):
    damaged = tmp_path / "06_masks.ipynb"
    damaged.write_text("{")
    ran = run_pytest("--submission", damaged)
    assert "25 failed" in ran.stdout
    assert "the notebook is damaged" in ran.stdout


def test_the_salt_changes_the_inputs(tmp_path):
    """An answer that is right for one length only is right on some salts."""
    one_length = tmp_path / "mine.py"
    one_length.write_text(
        "import torch\n"
        "def causal_mask(q_len, k_len=None):\n"
        "    k_len = k_len or q_len\n"
        "    assert not (k_len < q_len and q_len - k_len == 2)\n"
        "    return torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)\n"
    )
    name = "test_a_short_causal_mask_leaves_the_first_queries_blind"
    assert {by_pytest(find("06_masks"), one_length, salt)[name][0] for salt in "abcdef"} == {"pass", "error"}


def test_a_device_that_is_not_there_is_named():
    ran = run_pytest("--device", "cuda")
    if "25 passed" not in ran.stdout:
        assert "this machine has no device cuda" in ran.stdout
