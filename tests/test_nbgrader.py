"""nbgrader's commands read our gradebook and notebooks, and its own autograde gives the same marks."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.catalogue import catalogue, find
from autograder.checks.samples import as_script, hand_in, solution, untouched, with_answer, with_mistake
from autograder.mistakes import mistakes_of

MASKS, HEADS = find("06_masks"), find("09_multi_head")
LOOP = "def masked_attention(q, k, v, mask):\n    while True:\n        pass"
FORGED = "from IPython.display import display\n6"


def nbgrader(course: Path, *command: str) -> str:
    return called(course, "-m", "nbgrader", *command)


def called(course: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=course, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def new_course(folder: Path, root: Path) -> Path:
    folder.mkdir()
    shutil.copy(root / "nbgrader_config.py", folder)
    for name in ("solutions", "exercises"):
        shutil.copytree(root / name, folder / name)
    return folder


def exported(course: Path) -> dict:
    nbgrader(course, "export")
    with open(course / "grades.csv", encoding="utf-8") as file:
        return {(row["student_id"], row["assignment"]): float(row["score"]) for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def courses(tmp_path_factory, root) -> tuple[Path, Path]:
    """The same submissions graded twice: by our command, and by stock `nbgrader autograde` with our configuration."""
    folder = tmp_path_factory.mktemp("nbgrader")
    ours, stock = new_course(folder / "ours", root), new_course(folder / "stock", root)
    for exercise in (MASKS, HEADS):
        work = {"right": solution(exercise), "untouched": untouched(exercise)}
        for mistake in mistakes_of(exercise.module)[:: len(mistakes_of(exercise.module)) // 4]:
            work[f"mistake_{mistake.name}"] = with_mistake(exercise, mistake)
        for student, notebook in work.items():
            hand_in(ours / "submitted", student, exercise, notebook)
    forged = solution(MASKS)
    for cell in forged.cells:
        if cell.get("id") == "check-masked_attention":
            cell.source = FORGED
        if cell.get("id") == "answer-masked_attention":
            cell.source = LOOP
    hand_in(ours / "submitted", "forged_check", MASKS, forged)
    hand_in(ours / "submitted", "loop", MASKS, with_answer(solution(MASKS), "masked_attention", LOOP))
    deleted = solution(MASKS)
    deleted.cells = [cell for cell in deleted.cells if cell.get("id") != "check-causal_mask"]
    hand_in(ours / "submitted", "deleted_check", MASKS, deleted)
    twice = solution(MASKS)
    twice.cells.append(next(cell for cell in twice.cells if cell.get("id") == "check-causal_mask").copy())
    twice.cells[-1]["id"] = "another"
    hand_in(ours / "submitted", "duplicated_check", MASKS, twice)
    shutil.copytree(ours / "submitted", stock / "submitted")
    hand_in(ours / "submitted", "script", MASKS, as_script(solution(MASKS)))
    called(ours, "-m", "autograder", "grade", "submitted", "--out", "out")
    for exercise in (MASKS, HEADS):
        nbgrader(stock, "generate_assignment", exercise.name, "--force")
        nbgrader(stock, "autograde", exercise.name)
    return ours, stock


def test_stock_autograde_gives_the_same_marks_as_our_command(courses):
    ours, stock = map(exported, courses)
    assert ours.pop(("script", "06_masks")) == 20
    del ours["script", "09_multi_head"]  # not handed in; nbgrader reads no scripts, so it does not know this student
    assert ours == stock
    assert ours["right", "06_masks"] == ours["right", "09_multi_head"] == 20
    assert ours["untouched", "06_masks"] == 0
    assert ours["loop", "06_masks"] == ours["forged_check", "06_masks"] == 14
    assert ours["deleted_check", "06_masks"] == ours["duplicated_check", "06_masks"] == 20


def test_the_exported_marks_match_our_report(courses):
    with open(courses[0] / "out" / "grades.csv", encoding="utf-8") as file:
        reported = {(row["student"], row["exercise"]): float(row["score"]) for row in csv.DictReader(file)}
    every = exported(courses[0])  # nbgrader also lists what was not handed in, with 0
    assert {key: every[key] for key in reported} == reported
    assert all(score == 0 for key, score in every.items() if key not in reported)


def test_nbgrader_makes_feedback_from_both(courses):
    for course in courses:
        nbgrader(course, "generate_feedback", "06_masks")
        page = next((course / "feedback" / "loop" / "06_masks").glob("*.html")).read_text(encoding="utf-8")
        assert "does it loop forever?" in page
        page = next((course / "feedback" / "right" / "06_masks").glob("*.html")).read_text(encoding="utf-8")
        assert "20.0 / 20.0" in page or "Score: 20.0" in page


def test_every_check_cell_has_a_mark_and_needs_no_manual_grading(courses):
    for course in courses:
        with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
            for exercise in (MASKS, HEADS):
                for submission in book.assignment_submissions(exercise.name):
                    for notebook in submission.notebooks:
                        assert all(grade.auto_score is not None for grade in notebook.grades)
                        assert not any(grade.needs_manual_grade for grade in notebook.grades)


def test_formgrader_sees_every_submission_as_graded(courses):
    for course in courses:
        config = Config()
        config.CourseDirectory.root = str(course)
        config.CourseDirectory.db_url = f"sqlite:///{course}/gradebook.db"
        seen = NbGraderAPI(CourseDirectory(config=config), config=config).get_submissions("06_masks")
        graded = [submission for submission in seen if submission["student"] != "script"]
        assert len(graded) >= 8
        assert all(submission["autograded"] and not submission["needs_manual_grade"] for submission in graded)
        assert {s["student"]: s["score"] for s in graded}["right"] == 20


def test_a_manual_mark_survives_and_asks_for_manual_grading(courses):
    course = courses[0]
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        grade = book.find_grade("check-causal_mask", "06_masks", "06_masks", "untouched")
        grade.manual_score = 1.5
        book.db.commit()
    called(course, "-m", "autograder", "grade", "submitted", "--out", "out", "--fresh")
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        grade = book.find_grade("check-causal_mask", "06_masks", "06_masks", "untouched")
        assert (grade.manual_score, grade.auto_score, grade.needs_manual_grade) == (1.5, 0.0, True)


def test_every_released_notebook_is_valid_for_nbgrader(root):
    for exercise in catalogue().values():
        path = f"exercises/{exercise.name}/{exercise.name}.ipynb"
        assert "raise NotImplementedError()" in (root / path).read_text(encoding="utf-8")
        assert "BEGIN SOLUTION" not in (root / path).read_text(encoding="utf-8")
