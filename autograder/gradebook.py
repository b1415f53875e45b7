"""Write marks into nbgrader's own gradebook, so that its feedback, export and formgrader work untouched."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from .catalogue import catalogue
from .release import COURSE, EXERCISES, course_root, generate

SQLITE = "sqlite:///"


@contextmanager
def opened(db_url: str, exercises: set[str]):
    """The gradebook, with all these exercises entered in it."""
    if db_url.startswith(SQLITE):  # nbgrader changes folders: a relative path would mean another file there
        db_url = SQLITE + str(Path(db_url.removeprefix(SQLITE)).absolute())
    with Gradebook(db_url, COURSE) as book:
        known = {assignment.name for assignment in book.assignments}
    for name in sorted(exercises - known):
        with tempfile.TemporaryDirectory(prefix="autograder-release-") as folder:
            generate(catalogue()[name], course_root(), db_url, Path(folder) / EXERCISES)
    with Gradebook(db_url, COURSE) as book:
        yield book


def record(book: Gradebook, result: dict) -> None:
    """Enter one result. A mark that a person gave stays, and is marked for another look."""
    student, exercise = result["student"], result["exercise"]
    try:
        book.find_student(student)
    except MissingEntry:
        book.add_student(student)
    with book.db.no_autoflush:  # nbgrader builds the entry piece by piece
        submission = book.update_or_create_submission(exercise, student)
    scores = {f"check-{part['id']}": part for part in result["parts"]}
    for notebook in submission.notebooks:
        for grade in notebook.grades:
            part = scores.get(grade.name)
            grade.auto_score = part["score"] if part else 0.0
            grade.needs_manual_grade = grade.manual_score is not None
        for comment in notebook.comments:
            part = scores.get(comment.name.replace("answer-", "check-"))
            comment.auto_comment = "No response." if part and part["verdict"] == "missing" else None
    book.db.commit()
