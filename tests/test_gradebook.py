"""nbgrader's gradebook in SQLite and in a real PostgreSQL: no mark is lost, and nothing entered by hand is changed."""

import multiprocessing
import secrets
import sqlite3
import sys
from datetime import datetime, timedelta

import postgres
import psycopg
import pytest
from nbgrader.api import Gradebook
from sqlalchemy import text

from autograder.catalogue import find
from autograder.checks.samples import hand_in, solution
from autograder.cli import main
from autograder.course import COURSE, course_root
from autograder.errors import InputError, Locked, Unfinished
from autograder.gradebook import penalties
from autograder.gradebook.marks import Marks, address
from autograder.gradebook.release import generate
from autograder.grading.journal import Journal
from autograder.grading.pending import PendingMarks
from autograder.intake.submission import Submission
from autograder.results import PartReport, SubmissionReport
from autograder.verdicts import Verdict

MASKS = find("06_masks")
WRITERS, STUDENTS = 4, 12


@pytest.fixture(scope="session")
def server():
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/gradebook.db"
    server = request.getfixturevalue("server")
    name = f"gradebook_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


def report(student: str, share: float = 1.0, verdict: str = "pass") -> SubmissionReport:
    """A report in which every part gets this share of its points."""
    parts = [PartReport(part.name, part.points * share, part.points, Verdict(verdict)) for part in MASKS.parts]
    total = sum(part.score for part in parts)
    return SubmissionReport(student, MASKS.name, total, MASKS.points, Verdict(verdict), 0.25, tuple(parts))


def scores(url: str) -> dict[str, float]:
    with Gradebook(address(url), COURSE) as book:
        return {s.student.id: s.score for s in book.assignment_submissions(MASKS.name)}


def test_nbgrader_finds_the_marks(url):
    with Marks(url) as marks:
        marks.enter(report("ada"))
        marks.enter(report("alan", 0.5, "wrong"))
        marks.enter(report("grace", 0.0, "missing"))
        marks.enter(report("ada", 0.25, "wrong"))
    assert scores(url) == {"ada": 5, "alan": 10, "grace": 0}
    with Gradebook(address(url), COURSE) as book:
        comments = book.find_submission_notebook(MASKS.name, MASKS.name, "grace").comments
        assert {comment.comment for comment in comments} == {"No response."}
        assert not book.find_submission(MASKS.name, "ada").needs_manual_grade
        assert book.find_submission(MASKS.name, "ada").max_score == 20


def test_an_exercise_is_entered_as_nbgrader_would(tmp_path):
    generate(MASKS, course_root(), f"sqlite:///{tmp_path}/theirs.db", tmp_path / "release")
    with Marks(f"sqlite:///{tmp_path}/ours.db") as marks:
        marks.enter(report("ada"))
    found = []
    for name in ("ours", "theirs"):
        with Gradebook(f"sqlite:///{tmp_path}/{name}.db", COURSE) as book:
            notebook = book.find_notebook(MASKS.name, MASKS.name)
            cells = [*notebook.grade_cells, *notebook.solution_cells, *notebook.source_cells]
            entries = [{k: v for k, v in cell.to_dict().items() if k != "id"} for cell in cells]
            version = book.db.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
            found.append((sorted(entries, key=repr), notebook.kernelspec, notebook.assignment.course_id, version))
    assert found[0] == found[1]


def test_manual_changes_survive_another_grading(url):
    with Marks(url) as marks:
        marks.enter(report("ada"))
        with Gradebook(address(url), COURSE) as book:
            submission = book.find_submission(MASKS.name, "ada")
            submission.extension, submission.notebooks[0].late_submission_penalty = timedelta(days=2), 1.5
            submission.notebooks[0].flagged = True
            grade = book.find_grade("check-causal_mask", MASKS.name, MASKS.name, "ada")
            grade.manual_score, grade.extra_credit = 2.5, 0.5
            comment = book.find_comment("answer-causal_mask", MASKS.name, MASKS.name, "ada")
            comment.manual_comment = "很好！Well put."
            book.find_student("ada").first_name = "Ada"
            book.db.commit()
        marks.enter(report("ada", 0.5, "wrong"))
    with Gradebook(address(url), COURSE) as book:
        submission = book.find_submission(MASKS.name, "ada")
        grade = book.find_grade("check-causal_mask", MASKS.name, MASKS.name, "ada")
        assert (grade.manual_score, grade.extra_credit, grade.auto_score, grade.score) == (2.5, 0.5, 1.5, 3.0)
        assert grade.needs_manual_grade
        other = book.find_grade("check-padding_mask", MASKS.name, MASKS.name, "ada")
        assert (other.auto_score, other.needs_manual_grade) == (1.5, False)
        assert book.find_comment("answer-causal_mask", MASKS.name, MASKS.name, "ada").comment == "很好！Well put."
        assert (submission.late_submission_penalty, submission.extension) == (1.5, timedelta(days=2))
        assert submission.notebooks[0].flagged
        assert submission.student.first_name == "Ada"


def test_unchanged_marks_need_no_manual_grading(tmp_path):
    url, ada = f"sqlite:///{tmp_path}/gradebook.db", Submission("ada", MASKS.name, None)
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.add("key", report("ada"))
        with PendingMarks(url, journal) as pending:
            pending.enter(ada, graded_now=True)
    with Gradebook(url, COURSE) as book:
        grade = book.find_grade("check-causal_mask", MASKS.name, MASKS.name, "ada")
        grade.manual_score, grade.needs_manual_grade = 2.0, False
        book.db.commit()
    with Journal(tmp_path / "journal.jsonl") as journal, PendingMarks(url, journal) as pending:
        pending.enter(ada, graded_now=False)
        pending.finish()
    with Gradebook(url, COURSE) as book:
        assert not book.find_grade("check-causal_mask", MASKS.name, MASKS.name, "ada").needs_manual_grade


def test_a_deleted_gradebook_is_filled_from_the_journal(tmp_path):
    ada = Submission("ada", MASKS.name, None)
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.add("key", report("ada"))
        for name in ("first.db", "second.db"):
            with PendingMarks(f"sqlite:///{tmp_path}/{name}", journal) as pending:
                pending.enter(ada, graded_now=name == "first.db")
            assert scores(f"sqlite:///{tmp_path}/{name}") == {"ada": 20}


def test_late_work_is_penalised_as_nbgrader_is_configured(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/gradebook.db"
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    monkeypatch.chdir(tmp_path)
    penalties._plugin.cache_clear()
    with Marks(url) as marks:
        marks.enter(report("ada"))
        with Gradebook(url, COURSE) as book:
            book.find_assignment(MASKS.name).duedate = datetime(2026, 1, 10, 12)
            book.db.commit()
        marks.enter(report("ada", 0.5, "wrong"), "2026-01-10 13:00:00 UTC")
        marks.enter(report("alan"), "2026-01-10 11:59:59 UTC")
        marks.enter(report("grace"), "the day before yesterday")
    penalties._plugin.cache_clear()
    with Gradebook(url, COURSE) as book:
        ada, alan, grace = (book.find_submission(MASKS.name, name) for name in ("ada", "alan", "grace"))
        assert (ada.total_seconds_late, ada.late_submission_penalty) == (3600, 10)
        assert (alan.total_seconds_late, alan.late_submission_penalty) == (0, 0)
        assert (grace.timestamp, grace.score) == (None, 20)


def write_everybody(url: str, writer: int, started) -> None:
    started.wait()
    with Marks(url) as marks:
        for number in range(STUDENTS):
            marks.enter(report(f"shared{number}", 0.5, "wrong"))
            marks.enter(report(f"own{writer}-{number}", 0.25, "wrong"))


def test_several_graders_at_once_lose_no_marks(url):
    """They also make the database and the exercise at once."""
    fork = multiprocessing.get_context("fork")
    started = fork.Barrier(WRITERS)
    writers = [fork.Process(target=write_everybody, args=(url, n, started)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    shared = {f"shared{number}": 10 for number in range(STUDENTS)}
    own = {f"own{writer}-{number}": 5 for writer in range(WRITERS) for number in range(STUDENTS)}
    assert scores(url) == shared | own


def test_marks_wait_in_the_journal_while_the_gradebook_is_locked(tmp_path):
    url = f"sqlite:///{tmp_path}/gradebook.db?timeout=0.1"
    people = [Submission(name, MASKS.name, None) for name in ("ada", "alan")]
    with Marks(url) as marks:
        marks.enter(report("grace"))
    other = sqlite3.connect(tmp_path / "gradebook.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with Journal(tmp_path / "journal.jsonl") as journal, PendingMarks(url, journal) as pending:
        for person in people:
            journal.add("key", report(person.student))
            pending.enter(person, graded_now=True)
        with pytest.raises(Locked, match="kept in the journal"):
            pending.finish()
    other.close()
    with Journal(tmp_path / "journal.jsonl") as journal, PendingMarks(url, journal) as pending:
        for person in people:
            pending.enter(person, graded_now=False)
        pending.finish()
    assert scores(url) == {"ada": 20, "alan": 20, "grace": 20}


def test_a_name_that_the_database_refuses_affects_no_other_student(server, tmp_path):
    long = "a" * 200
    with Journal(tmp_path / "journal.jsonl") as journal, PendingMarks(server, journal) as pending:
        for name in (long, "ada"):
            journal.add("key", report(name))
            pending.enter(Submission(name, MASKS.name, None), graded_now=True)
        with pytest.raises(Unfinished, match="too long"):
            pending.finish()
    assert scores(server) == {"ada": 20}


@pytest.mark.parametrize("wrong", ["nonsense", "sqlite", "oracle+nothing"])
def test_a_malformed_url_is_explained(wrong):
    with pytest.raises(InputError, match="postgresql://"):
        address(wrong)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading needs Linux")
def test_the_command_grades_into_postgresql(server, tmp_path, monkeypatch):
    path = hand_in(tmp_path / "in", "hedy", MASKS, solution(MASKS))
    monkeypatch.chdir(tmp_path)
    assert main(["grade", str(path), "--db", server]) == 0
    assert scores(server)["hedy"] == 20
    assert not (tmp_path / "gradebook.db").exists()
