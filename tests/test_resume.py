"""A stopped run continues where it stopped. Whatever stops it, no mark is lost and none is changed."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.catalogue import find
from autograder.checks.samples import as_script, hand_in, solution, untouched, with_answer, with_mistake
from autograder.course import COURSE
from autograder.errors import Unfinished
from autograder.grading import task
from autograder.grading.grade import Conditions
from autograder.grading.run import Options, run
from autograder.grading.task import Lost, Task, given_up
from autograder.grading.workers import Workers
from autograder.intake.submission import Submission
from autograder.isolation.zygote import shared
from autograder.mistakes import mistakes_of
from autograder.student.sandbox import kernel

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading needs Linux")

MASKS = find("06_masks")
KILLS = 20
PATIENCE = 60  # seconds a test waits for something that must happen before it gives up
PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory) -> Path:
    """Twelve submissions of several kinds."""
    folder = tmp_path_factory.mktemp("class") / "in"
    known = mistakes_of(MASKS.module)
    for i in range(4):
        hand_in(folder, f"wrong{i}", MASKS, with_mistake(MASKS, known[3 * i]))
        hand_in(folder, f"right{i}", MASKS, solution(MASKS))
    hand_in(folder, "script", MASKS, as_script(solution(MASKS)))
    hand_in(folder, "untouched", MASKS, untouched(MASKS))
    hand_in(folder, "broken", MASKS, with_answer(solution(MASKS), "causal_mask", "def causal_mask(:"))
    hand_in(folder, "damaged", MASKS, solution(MASKS)).write_text("{")
    return folder


@pytest.fixture(autouse=True)
def salt(monkeypatch):
    monkeypatch.setenv("AUTOGRADER_SALT", "the same in every run")


def options(source: Path, folder: Path, **others) -> Options:
    return Options(
        source, folder / "out", db=f"sqlite:///{folder}/gradebook.db", autograded=folder / "autograded", **others
    )


def everything(folder: Path) -> dict:
    """Everything that a run writes, without the seconds."""
    results = json.loads((folder / "out" / "results.json").read_text(encoding="utf-8"))
    for submission in results["submissions"]:
        del submission["seconds"]
    with Gradebook(f"sqlite:///{folder}/gradebook.db", COURSE) as book:
        notebooks = [n for s in book.assignment_submissions(MASKS.name) for n in s.notebooks]
        grades = [g.to_dict() for n in notebooks for g in n.grades] + [
            c.to_dict() for n in notebooks for c in n.comments
        ]
    return {
        "results": results,
        "grades.csv": (folder / "out" / "grades.csv").read_bytes(),
        "gradebook": sorted(repr({k: v for k, v in grade.items() if k != "id"}) for grade in grades),
        "autograded": {str(p.relative_to(folder)): p.read_bytes() for p in (folder / "autograded").rglob("*.*")},
    }


def lines(journal: Path) -> int:
    """How many submissions were graded."""
    return sum('"report"' in line for line in journal.read_text(encoding="utf-8").splitlines())


@pytest.fixture
def adopt_orphans():
    """Orphaned processes become our children, so that all of them are counted."""
    kernel.prctl(PR_SET_CHILD_SUBREAPER, 1)
    yield
    kernel.prctl(PR_SET_CHILD_SUBREAPER, 0)


def children() -> set[int]:
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {int(number) for number in found}


def wait_until_only(expected: set[int]) -> None:
    """Wait until every process that a dead grader started is dead too."""
    deadline = time.monotonic() + PATIENCE
    while (left := children() - expected) and time.monotonic() < deadline:
        for number in left:
            os.waitpid(number, os.WNOHANG)
        time.sleep(0.01)
    assert not left, [Path(f"/proc/{number}/cmdline").read_bytes() for number in left]


def started_grader(chosen: Options) -> int:
    """A grader in its own process, forked from this one, which has already imported everything."""
    grader = os.fork()
    if grader:
        return grader
    try:
        run(chosen)
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    os._exit(1)


def killed_after(grader: int, seconds: float) -> bool:
    """Kill the grader after some seconds. Returns whether it was still working; it must not have failed by itself."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(grader, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return False
        time.sleep(0.002)
    os.kill(grader, signal.SIGKILL)
    _, status = os.waitpid(grader, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return os.waitstatus_to_exitcode(status) != 0


def test_twenty_kills_at_random_moments_change_nothing(handed_in, tmp_path, adopt_orphans, record_property):
    shared().wait_until_ready()
    ours = children()
    started = time.monotonic()
    assert not killed_after(started_grader(options(handed_in, tmp_path / "undisturbed", jobs=2)), PATIENCE * 10)
    length = time.monotonic() - started
    wanted = everything(tmp_path / "undisturbed")
    seed = random.randrange(2**32)
    record_property("seed", seed)
    moments = random.Random(seed)
    kills, rounds, finished = 0, 0, False
    while kills < KILLS or not finished:
        folder = tmp_path / f"round{rounds}"
        seconds = moments.uniform(0, length) if kills < KILLS else PATIENCE * 10
        finished = not killed_after(started_grader(options(handed_in, folder, jobs=2)), seconds)
        wait_until_only(ours)
        kills += not finished
        if finished:
            assert everything(folder) == wanted, f"seed {seed}, round {rounds}"
            rounds += 1
    assert kills == KILLS


def command(source: Path, folder: Path, *more: str, **about) -> subprocess.Popen:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "autograder", "grade", str(source), "--out", "out", "--jobs", "2", "--lang", "en", *more],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **about,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_command_leaves_nothing_running_and_can_continue(handed_in, tmp_path, adopt_orphans, number):
    ours = children()
    grader = command(handed_in, tmp_path)
    first = grader.stdout.readline()
    if number is signal.SIGINT:
        os.killpg(grader.pid, number)  # as a terminal does
    else:
        grader.kill()
    _, said = grader.communicate(timeout=PATIENCE)
    wait_until_only(ours)
    assert "06_masks" in first
    assert grader.returncode == (3 if number is signal.SIGINT else -signal.SIGKILL)
    if number is signal.SIGINT:
        assert said == "autograder: stopped; run the same command to go on\n"
    before = lines(tmp_path / "out" / "journal.jsonl")
    assert 0 < before < 12
    run(options(handed_in, tmp_path, jobs=2))
    assert lines(tmp_path / "out" / "journal.jsonl") == 12  # none of them twice


def test_a_second_run_grades_only_what_changed(tmp_path):
    for name in ("ada", "alan", "grace"):
        hand_in(tmp_path / "in", name, MASKS, solution(MASKS))
    chosen, journal = options(tmp_path / "in", tmp_path), tmp_path / "out" / "journal.jsonl"
    first = run(chosen)
    assert (run(chosen), lines(journal)) == (first, 3)
    hand_in(tmp_path / "in", "alan", MASKS, untouched(MASKS))
    again = run(chosen)
    assert [report.score for report in again] == [20, 0, 20]
    assert (again[0], again[2], lines(journal)) == (first[0], first[2], 4)
    (tmp_path / "autograded" / "ada" / "06_masks" / "06_masks.ipynb").unlink()
    run(chosen)
    assert lines(journal) == 5
    run(options(tmp_path / "in", tmp_path, fresh=True))
    assert lines(journal) == 3


def test_a_command_on_a_full_disk_ends_with_3_and_continues_when_there_is_room(tmp_path):
    hand_in(tmp_path / "in", "ada", MASKS, solution(MASKS))
    full = command(
        tmp_path / "in", tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    )
    _, said = full.communicate(timeout=PATIENCE * 5)
    assert full.returncode == 3, said
    assert "run the same command" in said
    assert run(options(tmp_path / "in", tmp_path))[0].score == 20


def dies(mark: Path) -> str:
    """Kill this worker at the first call, or at every call when the file says so."""
    text = mark.read_text()
    if text != "dead":
        mark.write_text("dead" if text == "once" else text)
        os.kill(os.getpid(), signal.SIGKILL)
    return mark.name


def test_a_lost_worker_is_retried_and_affects_no_other_task(tmp_path):
    marks = {name: tmp_path / name for name in ("once", "always", *(f"dead{i}" for i in range(6)))}
    for name, mark in marks.items():
        mark.write_text(name.rstrip("0123456789"))
    with Workers(2, "cpu") as crew:
        done = {mark.name: value for mark, value in crew.map(dies, list(marks.values()))}
    assert isinstance(done.pop("always"), Lost)
    assert done == {name: name for name in marks if name != "always"}


def test_a_submission_that_always_loses_its_worker_is_a_grader_error(tmp_path):
    result = given_up(Task("key", Submission("ada", MASKS.name, None), Conditions("salt"), "en"), 3)
    assert (result.report.verdict, result.report.score, result.report.max_score) == ("grader_error", 0, 20)
    assert "not the student's fault" in result.report.parts[0].message.en
    assert "check-causal_mask" in result.notebook


def test_nothing_is_graded_when_the_model_solution_loses_its_worker(tmp_path, monkeypatch):
    def lost(*about, **more):
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(task, "grade_file", lost)
    hand_in(tmp_path / "in", "ada", MASKS, solution(MASKS))
    with pytest.raises(Unfinished, match="die as soon as they start"):
        run(options(tmp_path / "in", tmp_path))
    assert lines(tmp_path / "out" / "journal.jsonl") == 0
