"""Our engine as two steps of stock `nbgrader autograde`: tidying up, and in place of running the notebook in a kernel."""

import os
import secrets
import tempfile
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbgrader.preprocessors import NbGraderPreprocessor

from . import schema, trust  # noqa: F401 — schema: nbgrader opens its gradebook
from .autograded import fill, restore
from .catalogue import Exercise, catalogue
from .grading import grade
from .language import preferred
from .told import InputError, Told
from .work import missing_layers


def _exercise(resources) -> Exercise:
    name, names = resources["nbgrader"]["assignment"], ", ".join(catalogue())
    if name not in catalogue():
        raise InputError(f"no exercise is called {name}; there are {names}", f"没有叫 {name} 的练习；有的是 {names}")
    return catalogue()[name]


@contextmanager
def _in_the_readers_language():
    """nbgrader prints an error as it is."""
    try:
        yield
    except Told as told:
        raise RuntimeError(told.message[preferred()]) from None


class Restore(NbGraderPreprocessor):
    """Put back locked and missing cells. nbgrader's own step stops the whole class at one repeated cell name."""

    @_in_the_readers_language()
    def preprocess(self, nb, resources):
        restore(nb, _exercise(resources))
        return nb, resources


class Examine(NbGraderPreprocessor):
    """Grade the notebook in a process of its own and write a number into every check cell."""

    _salt = os.environ.get("AUTOGRADER_SALT") or secrets.token_hex(16)

    @_in_the_readers_language()
    def preprocess(self, nb, resources):
        names = resources["nbgrader"]
        exercise = _exercise(resources)
        lang = preferred()
        trust.demand_linux()
        if os.environ.get("AUTOGRADER_TRUST_SUBMISSIONS") != "1":
            trust.demand(missing_layers("cpu"))
        with tempfile.TemporaryDirectory(prefix="autograder-") as folder:
            path = Path(folder) / f"{exercise.name}.ipynb"
            nbformat.write(nb, path)
            graded = grade(names["student"], exercise.name, str(path), self._salt)
        fill(nb, exercise, graded.result, graded.cells, lang)
        for part in graded.result["parts"]:
            self.log.info("%s: %s %g/%d", part["id"], part["verdict"], part["score"], part["max_score"])
        return nb, resources
