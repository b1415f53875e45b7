"""nbgrader reads its settings from here. Marks come from our engine, not from running notebooks in a kernel."""

import warnings

from nbgrader.preprocessors import AssignLatePenalties, CheckCellMetadata, SaveAutoGrades
from sqlalchemy.exc import SAWarning

from autograder.nbgrader_engine import Examine, Restore

warnings.filterwarnings(
    "ignore", category=SAWarning
)  # nbgrader builds its entries piece by piece, and says so each time

c = get_config()  # noqa: F821 - nbgrader provides it
c.CourseDirectory.course_id = "attention-by-hand"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.Autograde.sanitize_preprocessors = [Restore]
c.Autograde.autograde_preprocessors = [Examine, SaveAutoGrades, AssignLatePenalties, CheckCellMetadata]
