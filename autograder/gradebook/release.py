"""Make the exercises from the solutions, with nbgrader's own `generate_assignment`."""

import shutil
import tempfile
from pathlib import Path

from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.catalogue import Exercise
from autograder.course import COURSE, EXERCISES, SOLUTIONS, notebook_in
from autograder.errors import UserError

from .upstream import ask_alembic_library


class ReleaseError(UserError):
    """nbgrader refused a solution; the message contains its log."""


def generate(exercise: Exercise, root: Path, db_url: str, into: Path) -> Path:
    """Release one exercise into the folder `into`, and enter it in the gradebook at `db_url`."""
    ask_alembic_library()  # nbgrader enters every release in a gradebook
    config = Config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.course_id = COURSE
    config.CourseDirectory.source_directory = SOLUTIONS
    config.CourseDirectory.release_directory = str(into)
    config.CourseDirectory.db_url = db_url
    config.IncludeHeaderFooter.header = ""
    outcome = NbGraderAPI(CourseDirectory(config=config), config=config).generate_assignment(exercise.name, force=True)
    if not outcome["success"]:
        solution, log = f"{SOLUTIONS}/{exercise.name}", f"{outcome.get('log')}\n{outcome.get('error')}"
        raise ReleaseError(f"{solution}: nbgrader refuses it\n{log}", f"{solution}：nbgrader 拒绝了它\n{log}")
    return into.parent / notebook_in(into.name, exercise.name)


def release(exercise: Exercise, root: Path) -> bool:
    """Bring `exercises/` up to date. Returns whether anything changed."""
    fresh = fresh_release(exercise, root)
    target = root / notebook_in(EXERCISES, exercise.name)
    if target.exists() and target.read_bytes() == fresh:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(fresh)
    return True


def fresh_release(exercise: Exercise, root: Path) -> bytes:
    """The exercise notebook as nbgrader makes it from the current solution."""
    folder = Path(tempfile.mkdtemp(prefix="autograder-release-"))
    try:
        return generate(exercise, root, f"sqlite:///{folder}/gradebook.db", folder / EXERCISES).read_bytes()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_current(exercise: Exercise, root: Path) -> bool:
    target = root / notebook_in(EXERCISES, exercise.name)
    return target.exists() and target.read_bytes() == fresh_release(exercise, root)
