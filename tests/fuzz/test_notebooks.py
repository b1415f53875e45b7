"""Notebooks mutated at random are read or refused, and never earn a mark by their form."""

import json
import random
import tempfile
from functools import cache
from pathlib import Path

import nbformat
from nbgrader.utils import determine_grade

from autograder.catalogue import find
from autograder.checks.samples import untouched
from autograder.gradebook import returned as autograded
from autograder.grading.grade import grade, part_report
from autograder.intake.submission import Submission, grade_id, read
from autograder.verdicts import Broken, Verdict
from fuzz import seeds
from fuzz.mutations import dumps, spoiled_bytes, spoiled_tree

CASES, END_TO_END = 3_000, 40
MASKS = find("06_masks")
FORGED = {"output_type": "execute_result", "data": {"text/plain": "20.0"}, "metadata": {}, "execution_count": 1}


@cache
def original() -> str:
    """The released notebook, short of words, with forged outputs in its check cells."""
    notebook = untouched(MASKS)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        if grade_id(cell).startswith("check-"):
            cell.outputs, cell.source = [nbformat.from_dict(FORGED)], "20.0"
    return nbformat.writes(notebook)


def spoiled(seed: str) -> bytes:
    chance = random.Random(seed)
    if chance.random() < 0.1:
        return spoiled_bytes(original().encode(), chance)
    return dumps(spoiled_tree(json.loads(original()), chance))


def read_and_returned(seed: str) -> str | None:
    """Read one spoiled notebook and make the autograded one; what is wrong with that, if anything."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "06_masks.ipynb")
        path.write_bytes(spoiled(seed))
        try:
            cells, notebook = read(Submission("somebody", MASKS.name, path), MASKS)
        except Broken as refused:
            return None if refused.verdict in (Verdict.ERROR, Verdict.MISSING) else str(refused)
    nothing = {"en": "nothing", "zh": "没有"}
    parts = [part_report(part, 0.0, Verdict.MISSING, None, nothing, []) for part in MASKS.parts]
    autograded.fill(notebook, MASKS, {"parts": parts}, cells, "en")
    json.dumps(notebook, ensure_ascii=False).encode()  # it can be written
    marks = [determine_grade(cell)[0] for cell in notebook.cells if grade_id(cell).startswith("check-")]
    return None if marks == [0.0] * len(MASKS.parts) else f"the marks are {marks}"


def graded(seed: str) -> str | None:
    """Grade one spoiled notebook in a real student's process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "06_masks.ipynb")
        path.write_bytes(spoiled(seed))
        result = grade("somebody", MASKS.name, str(path), "salt").result
    return f"{result['verdict']} {result['score']}" if result["score"] or result["verdict"] == "grader_error" else None


def test_a_mutated_notebook_is_read_or_refused_and_gets_no_mark():
    found = seeds.faults("notebook", read_and_returned, CASES)
    assert not found, seeds.report("notebook", found, "fuzz.test_notebooks", read_and_returned)


def test_a_mutated_notebook_gets_no_mark_from_the_whole_grader():
    graded("the first one waits until student processes can be started")
    found = seeds.faults("graded", graded, END_TO_END)
    assert not found, seeds.report("graded", found, "fuzz.test_notebooks", graded)
