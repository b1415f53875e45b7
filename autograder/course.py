"""Where the course lies on the disk."""

from pathlib import Path

from .told import InputError

COURSE = "attention-by-hand"
SOLUTIONS, EXERCISES = "solutions", "exercises"


def course_root() -> Path:
    """The folder that holds `solutions` and `exercises`."""
    root = Path(__file__).resolve().parents[1]
    if not (root / SOLUTIONS).is_dir():
        raise InputError(
            f"{root}: no folder {SOLUTIONS} here. This needs a checkout of the course",
            f"{root}：这里没有 {SOLUTIONS} 文件夹。这需要课程的完整仓库",
        )
    return root
