"""Mutated notebooks are read or refused, and never earn marks."""

import json
import random
import tempfile
from functools import cache
from pathlib import Path

import nbformat
from nbgrader.utils import determine_grade

from autograder.catalogue import find
from autograder.checks.samples import untouched
from autograder.gradebook import returned
from autograder.grading.grade import Conditions, grade_file
from autograder.intake.submission import Submission, grade_id, read
from autograder.isolation.session import CellRun
from autograder.language import Text
from autograder.results import PartReport, SubmissionReport
from autograder.verdicts import Broken, Verdict
from fuzz import seeds
from fuzz.mutations import dumps, mutated_bytes, mutated_tree

CASES, END_TO_END = 3_000, 40
MASKS = find("06_masks")
FORGED = {"output_type": "execute_result", "data": {"text/plain": "20.0"}, "metadata": {}, "execution_count": 1}


@cache
def original() -> str:
    """The code cells of the released notebook, with forged outputs in the check cells."""
    notebook = untouched(MASKS)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        if grade_id(cell).startswith("check-"):
            cell.outputs, cell.source = [nbformat.from_dict(FORGED)], "20.0"
    return nbformat.writes(notebook)


def mutated(seed: str) -> bytes:
    chance = random.Random(seed)
    if chance.random() < 0.1:
        return mutated_bytes(original().encode(), chance)
    return dumps(mutated_tree(json.loads(original()), chance))


def read_and_returned(seed: str) -> str | None:
    """Read one mutated notebook and make the autograded one; what is wrong with that, if anything."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "06_masks.ipynb")
        path.write_bytes(mutated(seed))
        try:
            cells, notebook = read(Submission("somebody", MASKS.name, path), MASKS)
        except Broken as refused:
            return None if refused.verdict in (Verdict.ERROR, Verdict.MISSING) else str(refused)
    nothing = Text("nothing", "没有")
    parts = tuple(PartReport(part.name, 0.0, part.points, Verdict.MISSING, nothing) for part in MASKS.parts)
    report = SubmissionReport("somebody", MASKS.name, 0.0, MASKS.points, Verdict.MISSING, 0.0, parts)
    returned.fill(notebook, MASKS, report, [CellRun(cell) for cell in cells], "en")
    json.dumps(notebook, ensure_ascii=False).encode()  # it can be written
    marks = [determine_grade(cell)[0] for cell in notebook.cells if grade_id(cell).startswith("check-")]
    return None if marks == [0.0] * len(MASKS.parts) else f"the marks are {marks}"


def graded(seed: str) -> str | None:
    """Grade one mutated notebook in a real student's process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "06_masks.ipynb")
        path.write_bytes(mutated(seed))
        report = grade_file("somebody", MASKS.name, path, Conditions("salt", may_lack=None)).report
    failed = report.score or report.verdict is Verdict.GRADER_ERROR
    return f"{report.verdict} {report.score}" if failed else None


def test_a_mutated_notebook_is_read_or_refused_and_gets_no_marks():
    found = seeds.faults("notebook", read_and_returned, CASES)
    assert not found, seeds.report("notebook", found, "fuzz.test_notebooks", read_and_returned)


def test_a_mutated_notebook_gets_no_marks_from_the_whole_grader():
    graded("the first one waits until student processes can be started")
    found = seeds.faults("graded", graded, END_TO_END)
    assert not found, seeds.report("graded", found, "fuzz.test_notebooks", graded)
