"""Run `otter run` on our submissions, in a separate environment, because it needs other versions than we do."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import nbformat
from rich.console import Console

from autograder.course import course_root

from . import masks_class
from .timing import place, timed

WANTED = "otter-grader==7.0.0"


class NotMeasured(Exception):
    """Otter could not be installed; the message says why."""


def seconds(submitted: Path, folder: Path, console: Console) -> float:
    """How long `otter run` takes for all submissions, with one command per submission, as its manual says."""
    python = _environment(console)
    tests = folder / "tests"
    tests.mkdir(parents=True)
    for part, statements in masks_class.ASSERTS.items():
        (tests / f"{part}.py").write_text(_test(part, statements), encoding="utf-8")
    otter = ["-m", "otter"]
    timed(
        [*otter, "generate", "-t", "tests", "-o", "autograder.zip", "--no-requirements", "--no-environment"],
        folder,
        python,
    )
    total = 0.0
    for path in sorted(submitted.glob("*/*/*.ipynb")):
        work = folder / f"{path.parts[-3]}.ipynb"
        nbformat.write(masks_class.without_checks(nbformat.read(path, as_version=4)), work)
        graded = folder / f"{work.stem}_graded"
        graded.mkdir()
        command = [*otter, "run", work.name, "-a", "autograder.zip", "-o", graded.name, "--no-logo"]
        total += timed(command, folder, python).seconds
        _look(graded / "results.json", right=int(work.stem[-4:]) % 2 == 0)
    return total


def _look(results: Path, right: bool) -> None:
    """Check that otter really ran the tests, because a grader that runs nothing would be fast."""
    tests = [test for test in json.loads(results.read_text())["tests"] if test["name"] in masks_class.ASSERTS]
    if len(tests) != len(masks_class.ASSERTS) or (right and any(test["score"] < test["max_score"] for test in tests)):
        raise RuntimeError(f"{results}: otter did not run every test, or took a right answer for wrong")


def _environment(console: Console) -> str:
    """Otter's own environment, made at first use. It uses our PyTorch, so that both run the same version."""
    home = place() / "otter"
    python = str(home / "bin" / "python")
    if not (home / ".installed").exists():
        console.print(f"making an environment for otter in {home}: python -m venv, pip install {WANTED} …")
        install = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
        for command in (
            [sys.executable, "-m", "venv", str(home)],
            [*install, WANTED, "ipykernel", "nbconvert"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise NotMeasured(f"{' '.join(command[1:4])} failed: {done.stderr.strip()[-200:]}")
        where = "import sysconfig; print(sysconfig.get_path('purelib'))"
        libraries = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
        ours = "\n".join([sysconfig.get_path("purelib"), str(course_root())])
        (Path(libraries) / "ours.pth").write_text(ours, encoding="utf-8")  # searched after otter's own libraries
        (home / ".installed").touch()
    return python


def _test(part: str, statements: list[str]) -> str:
    """An otter test file, in the format that otter calls OK."""
    code = "\n".join(f">>> {line}" for line in statements)
    case = {"code": code, "hidden": False, "locked": False}
    suite = {"cases": [case], "scored": True, "setup": "", "teardown": "", "type": "doctest"}
    test = {"name": part, "points": 1, "suites": [suite]}
    return f"OK_FORMAT = True\n\ntest = {test!r}\n"
