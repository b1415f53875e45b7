"""Build the site: from nothing, after a change of one page, and without any change."""

import shutil
import tempfile
from pathlib import Path

from rich.console import Console

from autograder.course import EXERCISES, course_root

from .timing import Numbers, timed


def site(console: Console, submissions: int) -> Numbers:
    """Build the whole site in both languages. `submissions` is not used."""
    with tempfile.TemporaryDirectory(prefix="autograder-bench-") as folder:
        course = Path(folder)
        for name in ("book", EXERCISES, "autograder"):
            shutil.copytree(course_root() / name, course / name, ignore=shutil.ignore_patterns("__pycache__", "_build"))
        for name in ("_config.yml", "_toc.yml"):
            shutil.copy(course_root() / name, course / name)
        console.print("the site from nothing, every chapter executed; this takes a few minutes …")
        clean = timed(["book/build.py"], course).seconds
        page = course / "book" / "en" / "06_masks.md"
        page.write_text(page.read_text(encoding="utf-8") + "\nOne more sentence.\n", encoding="utf-8")
        console.print("again, after one sentence on one page …")
        touched = timed(["book/build.py"], course).seconds
        unchanged = timed(["book/build.py"], course).seconds
        pages = len(list((course / "_build" / "site").glob("*/*.html")))
    return {
        "pages": pages,
        "seconds_from_nothing": clean,
        "seconds_after_one_page": touched,
        "seconds_with_nothing_to_do": unchanged,
        "times_faster_after_one_page": clean / touched,
    }
