"""Move marks from the journal into the gradebook.

If the gradebook cannot be written, grading continues. The marks stay in the journal and are entered at the end, or by
the next run.
"""

from typing import TYPE_CHECKING

from autograder.catalogue import catalogue
from autograder.errors import Locked, Unfinished
from autograder.intake.submission import Submission

from .journal import Journal

if TYPE_CHECKING:
    from autograder.gradebook.marks import Marks


class PendingMarks:
    """The marks that are not in the gradebook yet. Call `prepare` while workers are busy, because nbgrader loads slowly."""

    def __init__(self, db_url: str, journal: Journal):
        self.db_url, self.journal = db_url, journal
        self.marks: Marks | None = None
        self.late: list[Submission] = []
        self.refused: Unfinished | None = None

    def __enter__(self) -> "PendingMarks":
        return self

    def __exit__(self, *failure: object) -> None:
        if self.marks is not None:
            self.marks.close()

    def prepare(self) -> None:
        """Load what is needed to open the gradebook. Raises `InputError` if its address is not a database URL."""
        from autograder.gradebook.marks import address

        self.db_url = address(self.db_url)

    def _open(self) -> "Marks":
        if self.marks is None:
            from autograder.gradebook.marks import Marks

            self.marks = Marks(self.db_url)
        return self.marks

    def enter(self, submission: Submission, graded_now: bool) -> None:
        """Enter the journal's report, or remember to enter it later."""
        if submission.exercise not in catalogue():
            return
        if self.late:
            self.late.append(submission)
            return
        try:
            self._enter(submission, graded_now)
        except Locked:
            self.late.append(submission)
        except Unfinished as refused:
            self.refused = refused

    def finish(self) -> None:
        """Enter what had to wait. Raises `Unfinished` if something still cannot be entered."""
        waiting, self.late = self.late, []
        for submission in waiting:
            try:
                self._enter(submission, graded_now=False)
            except Locked:
                raise
            except Unfinished as refused:
                self.refused = refused
        if self.refused is not None:
            raise self.refused

    def _enter(self, submission: Submission, graded_now: bool) -> None:
        """Enter one report. If it was entered before, do nothing unless the gradebook has lost it.

        Entering it again would ask a person to review the marks again.
        """
        marks = self._open()
        report = self.journal.report(submission.student, submission.exercise)
        before = not graded_now and self.journal.is_entered(submission.student, submission.exercise)
        if before and marks.holds(report):
            return
        marks.enter(report, submission.timestamp)
        self.journal.entered(submission.student, submission.exercise)
