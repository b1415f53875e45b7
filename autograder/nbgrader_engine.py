"""Two steps for stock `nbgrader autograde`: `Restore` repairs a submitted notebook, `Examine` grades it in our sandbox.

`Examine` takes the place of nbgrader's own step, which runs the notebook in a kernel.
"""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from .catalogue import Exercise, catalogue
from .errors import InputError, UserError
from .gradebook.returned import fill, restore
from .gradebook.upstream import ask_alembic_library
from .grading.grade import Conditions, grade_file
from .grading.task import accepted_layers
from .isolation import guarantees
from .language import preferred

Resources = dict[str, Any]

ask_alembic_library()  # nbgrader opens its gradebook before it calls us


def _exercise(resources: Resources) -> Exercise:
    name, names = resources["nbgrader"]["assignment"], ", ".join(catalogue())
    if name not in catalogue():
        raise InputError(f"no exercise is called {name}; there are {names}", f"没有叫 {name} 的练习；有的是 {names}")
    return catalogue()[name]


@contextmanager
def _in_the_readers_language() -> Iterator[None]:
    """Turn a `UserError` into one text, because nbgrader prints the text of an exception."""
    try:
        yield
    except UserError as error:
        raise RuntimeError(error.message[preferred()]) from None


class Restore(NbGraderPreprocessor):  # type: ignore[misc]
    """Put back locked and missing cells. nbgrader's own step stops for the whole class when a cell name is repeated."""

    @_in_the_readers_language()
    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        restore(nb, _exercise(resources))
        return nb, resources


class Examine(NbGraderPreprocessor):  # type: ignore[misc]
    """Grade the notebook in a separate process and write a number into every check cell."""

    _salt = os.environ.get("AUTOGRADER_SALT") or secrets.token_hex(16)

    @_in_the_readers_language()
    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        exercise = _exercise(resources)
        guarantees.demand_linux()
        trusted = os.environ.get("AUTOGRADER_TRUST_SUBMISSIONS") == "1"
        conditions = Conditions(self._salt, may_lack=accepted_layers("cpu", trusted))
        with tempfile.TemporaryDirectory(prefix="autograder-") as folder:
            path = Path(folder) / f"{exercise.name}.ipynb"
            nbformat.write(nb, path)
            graded = grade_file(resources["nbgrader"]["student"], exercise.name, path, conditions)
        fill(nb, exercise, graded.report, graded.cells, preferred())
        for part in graded.report.parts:
            self.log.info("%s: %s %g/%d", part.id, part.verdict, part.score, part.max_score)
        return nb, resources
