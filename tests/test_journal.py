"""The journal survives damage, and a mark is kept until something that it depends on changes."""

import os
import resource
import shutil
import stat
import sys

import pytest

from autograder.catalogue import find
from autograder.checks.samples import hand_in, solution
from autograder.errors import Unfinished
from autograder.grading import fingerprint
from autograder.grading.journal import Journal
from autograder.intake.submission import Submission, loaded
from autograder.language import Text
from autograder.results import PartReport, SubmissionReport
from autograder.verdicts import Verdict

MASKS, SOFTMAX = find("06_masks"), find("05_softmax")


def test_a_mark_depends_on_its_suite_and_the_engine_but_not_on_other_code(tmp_path, monkeypatch):
    copy = tmp_path / "autograder"
    shutil.copytree(fingerprint.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "PACKAGE", copy)

    def forget():
        fingerprint.grader.cache_clear()
        fingerprint.engine.cache_clear()

    def grader(exercise):
        forget()
        return fingerprint.grader(exercise.name)

    def after_a_change_in(name, exercise=MASKS):
        before = grader(exercise)
        with open(copy / name, "a", encoding="utf-8") as file:
            file.write("\n# changed\n")
        return grader(exercise) != before

    try:
        for name in ("suites/test_06_masks.py", "reference/ch06_masks.py", "mistakes/ch06_masks.py",
                     "exam/comparison.py", "exam/proxy.py", "exam/diagnosis.py", "student/perform.py", "student/boot.py",
                     "student/sandbox/seccomp.py", "isolation/session.py", "grading/grade.py", "verdicts.py"):  # fmt: skip
            assert after_a_change_in(name), name
        for name in ("learner/check_part.py", "checks/audit.py", "benchmarks/timing.py", "suites/test_05_softmax.py"):
            assert not after_a_change_in(name), name
        assert after_a_change_in("suites/test_05_softmax.py", SOFTMAX)
    finally:
        forget()


def test_a_mark_depends_on_content_salt_and_device(tmp_path):
    path = hand_in(tmp_path, "ada", MASKS, solution(MASKS))
    ada = loaded(Submission("ada", MASKS.name, path))
    path.write_text("{}")
    changed = loaded(Submission("ada", MASKS.name, path))
    path.unlink()
    gone = loaded(Submission("ada", MASKS.name, path))
    cases = [
        (ada, "salt", "cpu"),
        (changed, "salt", "cpu"),
        (gone, "salt", "cpu"),
        (ada, "other", "cpu"),
        (ada, "salt", "cuda"),
    ]
    assert len({fingerprint.fingerprint(*case, "en") for case in cases}) == len(cases)


def report(student: str, verdict: Verdict = Verdict.PASS) -> SubmissionReport:
    part = PartReport("causal_mask", 1.0, 3, verdict, Text("seen", "所见"))
    return SubmissionReport(student, MASKS.name, 1.0, 20, verdict, 0.25, (part,))


@pytest.mark.parametrize("lost", range(1, 260, 17))
def test_a_truncated_journal_keeps_every_whole_line(tmp_path, lost):
    path, ends = tmp_path / "journal.jsonl", {}
    with Journal(path) as journal:
        for name in ("ada", "图灵"):
            journal.add(f"key {name}", report(name))
            ends[name] = path.stat().st_size - 1  # without the end of the line
    os.truncate(path, path.stat().st_size - lost)
    whole = [name for name, end in ends.items() if end <= path.stat().st_size]
    with Journal(path) as journal:
        assert [name for name in ends if journal.holds(name, MASKS.name, f"key {name}")] == whole
        journal.add("key grace", report("grace"))
    with Journal(path) as journal:
        assert all(journal.report(name, MASKS.name) == report(name) for name in (*whole, "grace"))


def test_garbage_in_the_journal_is_ignored(tmp_path):
    path = tmp_path / "journal.jsonl"
    garbage = b'\n\0\0\0\n[1]\n7\n{"key": 1}\n{"key": "k", "report": []}\n{"entered": []}\n\xff\xfe\nnull\n'
    path.write_bytes(garbage)
    with Journal(path) as journal:
        journal.add("key", report("ada"))
    with Journal(path) as journal:
        assert journal.holds("ada", MASKS.name, "key")


def test_a_grader_error_is_graded_again(tmp_path):
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.add("key", report("ada", Verdict.GRADER_ERROR))
        assert not journal.holds("ada", MASKS.name, "key")
        assert journal.report("ada", MASKS.name) == report("ada", Verdict.GRADER_ERROR)


def test_the_salt_is_kept_and_only_its_owner_can_read_it(tmp_path, monkeypatch):
    monkeypatch.delenv("AUTOGRADER_SALT", raising=False)
    path = tmp_path / "journal.jsonl"
    path.touch(mode=0o666)
    salts = []
    for _ in range(2):
        with Journal(path) as journal:
            salts.append(journal.salt)
    assert salts[0] == salts[1]
    assert len(salts[0]) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with Journal(path, fresh=True) as journal:
        assert journal.salt != salts[0]
    monkeypatch.setenv("AUTOGRADER_SALT", "mine")
    with Journal(path) as journal:
        assert journal.salt == "mine"


def in_another_process(function) -> int:
    """The exit status of a function that is called in a forked process; 1 when it raises."""
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_two_graders_cannot_use_one_folder(tmp_path):
    def second():
        with pytest.raises(Unfinished, match="another grader"):
            Journal(tmp_path / "journal.jsonl")

    with Journal(tmp_path / "journal.jsonl"):
        assert in_another_process(second) == 0
    assert in_another_process(lambda: Journal(tmp_path / "journal.jsonl")) == 0


def add_many(journal: Journal) -> None:
    for number in range(100):
        journal.add(f"key{number}", report(f"student{number}"))


def test_a_full_disk_is_reported_and_loses_nothing(tmp_path):
    """The kernel limits the size of the file, so a write is cut short as on a full disk."""
    path = tmp_path / "journal.jsonl"

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with Journal(path) as journal, pytest.raises(Unfinished, match="make room"):
            add_many(journal)

    assert in_another_process(fill) == 0
    assert path.read_bytes().endswith(b"\n")
    with Journal(path) as journal:
        kept = [n for n in range(100) if journal.holds(f"student{n}", MASKS.name, f"key{n}")]
        assert kept == list(range(len(kept)))
        assert len(kept) >= 3
