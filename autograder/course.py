"""Where the files of the course are."""

from pathlib import Path

from .errors import InputError

COURSE = "attention-by-hand"
SOLUTIONS, EXERCISES = "solutions", "exercises"
PACKAGE = Path(__file__).resolve().parent


def course_root() -> Path:
    """The folder that holds `solutions` and `exercises`."""
    root = PACKAGE.parent
    if not (root / SOLUTIONS).is_dir():
        raise InputError(
            f"{root}: no folder {SOLUTIONS} here. This command needs a checkout of the course",
            f"{root}：这里没有 {SOLUTIONS} 文件夹。这需要课程的完整仓库",
        )
    return root


def notebook_in(tree: str, exercise: str) -> Path:
    """The path of an exercise's notebook, relative to the course's folder; `tree` is `solutions` or `exercises`."""
    return Path(tree) / exercise / f"{exercise}.ipynb"


def solution_path(exercise: str) -> Path:
    return course_root() / notebook_in(SOLUTIONS, exercise)


def released_path(exercise: str) -> Path:
    return course_root() / notebook_in(EXERCISES, exercise)
