"""A hash of everything that a mark depends on. If the hash is the same, the mark would be the same.

A mark depends on the submission, on the exercise's suite, reference, mistakes, catalogue entry and released notebook, on
the rooms of the engine and its libraries, on the salt and on the device.
"""

import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version

from autograder.catalogue import catalogue
from autograder.course import PACKAGE, released_path
from autograder.intake.submission import Submission

ROOMS = ("student", "exam", "intake", "isolation", "reports", "gradebook", "grading")  # and the files beside them
LIBRARIES = ("torch", "numpy", "ipython", "safetensors")


def fingerprint(submission: Submission, salt: str, device: str, lang: str) -> str:
    """The hash for one submission, which must have been loaded."""
    known = submission.exercise in catalogue()
    about = (submission.student, submission.exercise, str(submission.timestamp), salt, device, lang)
    content = _hash([*about, grader(submission.exercise) if known else " ".join(catalogue())])
    if submission.unreadable is not None:
        content.update(repr(submission.unreadable.message).encode(errors="surrogateescape"))
    elif submission.content is not None and submission.path is not None:
        content.update(submission.path.suffix.encode() + b"\0" + submission.content)
    return content.hexdigest()


@cache
def grader(exercise: str) -> str:
    """The hash of everything on our side that a mark in this exercise depends on."""
    known = catalogue()[exercise]
    files = [
        PACKAGE / "suites" / f"test_{exercise}.py",
        PACKAGE / "reference" / f"{known.module}.py",
        PACKAGE / "mistakes" / f"{known.module}.py",
        released_path(exercise),
    ]
    entry = asdict(known)
    entry["parts"] = [part | {"forbidden": sorted(part["forbidden"])} for part in entry["parts"]]
    content = _hash([engine(), json.dumps(entry, sort_keys=True)])
    for path in files:
        content.update(path.name.encode() + b"\0" + path.read_bytes())
    return content.hexdigest()


@cache
def engine() -> str:
    """The hash of all source files used in grading and of the versions of Python and the libraries."""
    content = _hash([platform.python_version(), platform.machine(), *(version(name) for name in LIBRARIES)])
    files = [*PACKAGE.glob("*.py"), *(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))]
    for path in sorted(files):
        content.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    return content.hexdigest()


def _hash(texts: Iterable[str]) -> "hashlib.blake2b":
    content = hashlib.blake2b(digest_size=16)
    for text in texts:
        content.update(text.encode(errors="surrogateescape") + b"\0")
    return content
