"""The same submissions get identical marks, however the work is distributed."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.catalogue import find
from autograder.checks.samples import hand_in, solution, untouched, with_answer, with_mistake
from autograder.grading import grade
from autograder.isolation.busy import CpuWait
from autograder.mistakes import mistakes_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading needs Linux")


def work() -> list[tuple]:
    found = []
    for exercise in (find("05_softmax"), find("06_masks")):
        known = mistakes_of(exercise.module)
        found += [(f"wrong{i}", exercise, with_mistake(exercise, known[5 * i])) for i in range(3)]
        found += [("right", exercise, solution(exercise)), ("untouched", exercise, untouched(exercise))]
    return found


def graded(folder: Path, handed_in: list[tuple], jobs: int, threads: int) -> Path:
    folder.mkdir()
    for student, exercise, notebook in handed_in:
        hand_in(folder / "in", student, exercise, notebook)
    settings = {"OMP_NUM_THREADS": str(threads), "AUTOGRADER_SALT": "the same", "PYTHONHASHSEED": str(threads)}
    done = subprocess.run(
        [sys.executable, "-m", "autograder", "grade", "in", "--out", "out", "--jobs", str(jobs), "--lang", "en"],
        cwd=folder, env=os.environ | settings | {"PYTHONPATH": str(Path(__file__).parents[1])}, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "out"


def without_seconds(out: Path) -> list[dict]:
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))["submissions"]
    return [{key: value for key, value in result.items() if key != "seconds"} for result in results]


def test_jobs_threads_and_order_do_not_change_the_marks(tmp_path):
    one = graded(tmp_path / "one", work(), jobs=1, threads=1)
    other = graded(tmp_path / "other", work()[::-1], jobs=3, threads=4)
    assert (one / "grades.csv").read_bytes() == (other / "grades.csv").read_bytes()
    assert without_seconds(one) == without_seconds(other)


SLOW = """
import time
slept = []
def causal_mask(q_len, k_len=None):
    if not slept:
        slept.append(time.sleep(2.5))
    return _right(q_len, k_len)
"""


@pytest.mark.parametrize(("busy", "verdict"), [(True, "pass"), (False, "timeout")])
def test_a_timeout_on_a_busy_machine_is_graded_again(tmp_path, monkeypatch, busy, verdict):
    """Code that runs out of time is graded again with more time, if the machine was too busy."""
    exercise = find("06_masks")
    monkeypatch.setattr(CpuWait, "is_starved", lambda self: busy)
    limits = replace(exercise.limits, call_seconds=2, wall_seconds=60)
    monkeypatch.setattr(grade, "catalogue", lambda: {exercise.name: replace(exercise, limits=limits)})
    right = next(cell.source for cell in solution(exercise).cells if cell.get("id") == "answer-causal_mask")
    slow = right.replace("def causal_mask", "def _right") + SLOW
    path = hand_in(tmp_path, "slow", exercise, with_answer(solution(exercise), "causal_mask", slow))
    first, *others = grade.grade_file("slow", exercise.name, path, grade.Conditions("salt", may_lack=None)).report.parts
    assert first.verdict == verdict
    assert {part.verdict for part in others} == {"pass"}


def test_a_busy_machine_is_distinguished_from_a_slow_program():
    """A busy machine makes threads wait for a processor; a program that sleeps does not wait for one."""
    quiet = CpuWait()
    quiet.ran -= 10**9  # a second of work without waiting
    assert not quiet.is_starved()
    quiet.waited -= 10**9
    assert quiet.is_starved()
