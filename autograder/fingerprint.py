"""What a mark depends on, as one short text: when it is the same, the mark would be the same.

That is the submission, the exercise's suite, reference, mistakes, catalogue entry and released notebook, the engine's
own source and its libraries, the salt and the device.
"""

import ast
import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path

from .catalogue import catalogue
from .course import EXERCISES, course_root
from .submission import Submission

PACKAGE = Path(__file__).parent
LIBRARIES = ("torch", "numpy", "pytest", "ipython", "safetensors")


def fingerprint(submission: Submission, salt: str, device: str, lang: str) -> str:
    """`submission` must have been loaded."""
    known = submission.exercise in catalogue()
    about = (submission.student, submission.exercise, str(submission.timestamp), salt, device, lang)
    content = _hash([*about, grader(submission.exercise) if known else " ".join(catalogue())])
    if submission.unreadable is not None:
        content.update(repr(submission.unreadable.message).encode(errors="surrogateescape"))
    elif submission.content is not None:
        content.update(submission.path.suffix.encode() + b"\0" + submission.content)
    return content.hexdigest()


@cache
def grader(exercise: str) -> str:
    """Everything on our side that a mark in this exercise depends on."""
    known = catalogue()[exercise]
    roots = [
        PACKAGE / "work.py",
        *sorted((PACKAGE / "student").glob("*.py")),
        PACKAGE / "suites" / f"test_{exercise}.py",
        PACKAGE / "reference" / f"{known.module}.py",
        PACKAGE / "mistakes" / f"{known.module}.py",
    ]
    entry = asdict(known)
    entry["parts"] = [part | {"forbidden": sorted(part["forbidden"])} for part in entry["parts"]]
    versions = [platform.python_version(), platform.machine(), *(version(name) for name in LIBRARIES)]
    released = course_root() / EXERCISES / exercise / f"{exercise}.ipynb"
    content = _hash([json.dumps(entry, sort_keys=True), *versions])
    for path in [*sorted(_with_what_they_import(roots)), released]:
        content.update(path.name.encode() + b"\0" + path.read_bytes())
    return content.hexdigest()


def _hash(texts: Iterable[str]):
    content = hashlib.blake2b(digest_size=16)
    for text in texts:
        content.update(text.encode(errors="surrogateescape") + b"\0")
    return content


def _with_what_they_import(roots: list[Path]) -> set[Path]:
    found, waiting = set(), list(roots)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imports(path)
    return found


@cache
def _imports(path: Path) -> list[Path]:
    """The files of this package that a file imports."""
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = path.parents[node.level - 1]
            elif node.module and node.module.split(".")[0] == PACKAGE.name:
                base, node.module = PACKAGE, node.module.partition(".")[2]
            else:
                continue
            place = base.joinpath(*(node.module or "").split("."))
            names = [place, *(place / alias.name for alias in node.names)]
            found += [file for name in names for file in (name.with_suffix(".py"), name / "__init__.py")]
    return [file for file in found if file.is_file()]
