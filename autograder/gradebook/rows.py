"""Enter reports in nbgrader's tables. Each function runs inside a transaction that its caller commits."""

import json
from datetime import datetime
from functools import cache
from typing import Any

from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    GradeCell,
    Notebook,
    SolutionCell,
    SourceCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import select
from sqlalchemy.orm import Session, selectinload

from autograder.catalogue import catalogue
from autograder.course import COURSE
from autograder.intake.submission import part_of
from autograder.results import SubmissionReport
from autograder.verdicts import Verdict

from .penalties import late_penalty
from .returned import released

NO_RESPONSE = "No response."


def add_exercise(db: Session, exercise: str) -> None:
    """Enter an exercise as `nbgrader generate_assignment` would. Existing rows are kept."""
    assignment: Any = db.scalar(select(Assignment).where(Assignment.name == exercise))
    if assignment is None:
        assignment = Assignment(name=exercise, course_id=COURSE)
        db.add(assignment)
    notebook = next((n for n in assignment.notebooks if n.name == exercise), None)
    source = released(catalogue()[exercise])
    if notebook is None:
        kernel = json.dumps(source.metadata.get("kernelspec", {}))
        notebook = Notebook(name=exercise, assignment=assignment, kernelspec=kernel)
        db.add(notebook)
    db.flush()
    there = {(cell.type, cell.name) for cell in db.scalars(select(BaseCell).where(BaseCell.notebook_id == notebook.id))}
    there |= {("SourceCell", cell.name) for cell in notebook.source_cells}
    for cell in source.cells:
        if utils.is_grade(cell) or utils.is_solution(cell) or utils.is_locked(cell):
            for entry in _entries(cell):
                if (type(entry).__name__, entry.name) not in there:
                    entry.notebook_id = notebook.id
                    db.add(entry)
    db.flush()


def _entries(cell: NotebookNode) -> list[Any]:
    """The rows that nbgrader keeps for one cell."""
    about = cell.metadata.nbgrader
    name, kind, locked = about.grade_id, cell.cell_type, utils.is_locked(cell)
    checksum = about.get("checksum")
    found = [SourceCell(name=name, cell_type=kind, locked=locked, source=cell.source, checksum=checksum)]
    if utils.is_grade(cell):
        found.append(GradeCell(name=name, max_score=float(about.points), cell_type=kind))
    if utils.is_solution(cell):
        found.append(SolutionCell(name=name))
    return found


@cache
def _whole() -> list[Any]:
    """Options that load a submission and everything below it in a few queries."""
    notebooks = selectinload(SubmittedAssignment.notebooks)
    return [
        notebooks.selectinload(SubmittedNotebook.grades).selectinload(Grade.cell),
        notebooks.selectinload(SubmittedNotebook.comments).selectinload(Comment.cell),
    ]


def _find(db: Session, student: str, exercise: str) -> Any:
    wanted = select(SubmittedAssignment).join(Assignment).options(*_whole())
    return db.scalar(wanted.where(Assignment.name == exercise, SubmittedAssignment.student_id == student))


def scores(db: Session, student: str, exercise: str) -> dict[str, float] | None:
    """The marks in the gradebook, by the name of the cell; None if there is no such submission."""
    submission = _find(db, student, exercise)
    if submission is None:
        return None
    return {grade.name: grade.auto_score for nb in submission.notebooks for grade in nb.grades}


def add_report(db: Session, report: SubmissionReport, timestamp: str | None) -> None:
    student, exercise = report.student, report.exercise
    with db.no_autoflush:
        submission = _find(db, student, exercise) or _new(db, student, exercise)
        submission.timestamp = _time(timestamp) or submission.timestamp
        parts = {part.id: part for part in report.parts}
        for notebook in submission.notebooks:
            _complete(notebook)
            for grade in notebook.grades:
                part = parts.get(part_of(grade.cell.name))
                grade.auto_score = part.score if part else 0.0
                grade.needs_manual_grade = grade.manual_score is not None
            for comment in notebook.comments:
                part = parts.get(part_of(comment.cell.name))
                comment.auto_comment = NO_RESPONSE if part and part.verdict is Verdict.MISSING else None
        db.flush()
        if submission.timestamp and submission.duedate and submission.total_seconds_late > 0:
            for notebook in submission.notebooks:
                db.refresh(notebook, ["score"])
                penalty = late_penalty(student, notebook.score, submission.total_seconds_late)
                if penalty is not None:
                    notebook.late_submission_penalty = penalty


def _time(timestamp: str | None) -> datetime | None:
    """The time as nbgrader reads it; None if it cannot be read, because a student may have written it."""
    try:
        found: datetime | None = utils.parse_utc(timestamp)
        return found
    except (ValueError, OverflowError, TypeError, AttributeError):
        return None


def _new(db: Session, student: str, exercise: str) -> Any:
    if db.get(Student, student) is None:
        db.add(Student(id=student))
    assignment: Any = db.scalar(select(Assignment).where(Assignment.name == exercise))
    submission = SubmittedAssignment(assignment_id=assignment.id, student_id=student)
    db.add(submission)
    submission.notebooks = [
        SubmittedNotebook(notebook_id=notebook.id, notebook=notebook) for notebook in assignment.notebooks
    ]
    return submission


def _complete(notebook: Any) -> None:
    """Make sure that every cell of the exercise has a row, including cells that were added later."""
    graded = {grade.cell.name for grade in notebook.grades}
    commented = {comment.cell.name for comment in notebook.comments}
    for cell in notebook.notebook.grade_cells:
        if cell.name not in graded:
            notebook.grades.append(Grade(cell=cell))
    for cell in notebook.notebook.solution_cells:
        if cell.name not in commented:
            notebook.comments.append(Comment(cell=cell))
