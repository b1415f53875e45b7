"""Our engine as a step of stock `nbgrader autograde`: it takes the place of running the notebook in a kernel."""

import os
import secrets
import tempfile
from pathlib import Path

import nbformat
from nbgrader.preprocessors import NbGraderPreprocessor

from . import trust
from .autograded import fill
from .catalogue import catalogue
from .classrun import _missing_layers
from .grading import grade
from .language import preferred


class Examine(NbGraderPreprocessor):
    """Grade the notebook in a process of its own and write a number into every check cell."""

    _salt = os.environ.get("AUTOGRADER_SALT") or secrets.token_hex(16)

    def preprocess(self, nb, resources):
        names = resources["nbgrader"]
        exercise = catalogue().get(names["assignment"])
        if exercise is None:
            raise LookupError(f"no exercise is called {names['assignment']}; there are {', '.join(catalogue())}")
        lang = preferred()
        trust.demand_linux()
        if os.environ.get("AUTOGRADER_TRUST_SUBMISSIONS") != "1":
            trust.demand(_missing_layers("cpu"), lang)
        with tempfile.TemporaryDirectory(prefix="autograder-") as folder:
            path = Path(folder) / f"{exercise.name}.ipynb"
            nbformat.write(nb, path)
            graded = grade(names["student"], exercise.name, str(path), self._salt)
        fill(nb, exercise, graded.result, graded.cells, lang)
        for part in graded.result["parts"]:
            self.log.info("%s: %s %g/%d", part["id"], part["verdict"], part["score"], part["max_score"])
        return nb, resources
