"""The notebook that goes back to the instructor: the student's cells, our outputs, a number in every check cell.

nbgrader gives full marks to silence, so every check cell gets a number, also when nothing could be run.
"""

import copy
from pathlib import Path

import nbformat
from nbformat.v4 import new_output

from . import card
from .catalogue import Exercise
from .release import EXERCISES, course_root
from .sitting import Cell
from .submission import grade_id


def fill(notebook, exercise: Exercise, result: dict, cells: list[Cell], lang: str) -> None:
    """Replace all outputs of a submitted notebook by what was seen, restoring locked cells and missing checks."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in code:
        cell.outputs, cell.execution_count = [], None
    for cell, seen in zip(code, cells, strict=False):
        if seen.output:
            cell.outputs.append(new_output("stream", name="stdout", text=seen.output))
        if seen.broken:
            cell.outputs.append(new_output("stream", name="stdout", text=seen.broken.message[lang] + "\n"))
    restore(notebook, exercise)
    checks = {grade_id(cell): cell for cell in notebook.cells}
    for part in result["parts"]:
        cell = checks[f"check-{part['id']}"]
        shown = {"text/html": card.html(part, lang), "text/plain": card.text(part, lang)}
        cell.outputs = [
            new_output("display_data", data=shown),
            new_output("execute_result", data={"text/plain": repr(float(part["score"]))}, execution_count=None),
        ]


def write(path: Path, exercise: Exercise, graded, script: str | None, lang: str) -> None:
    """Write the autograded notebook of one submission to `path`."""
    notebook = copy.deepcopy(graded.notebook)
    if notebook is None:
        notebook = _stand_in(exercise, script)
    fill(notebook, exercise, graded.result, graded.cells if graded.notebook is not None else [], lang)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    nbformat.write(notebook, path)


def _released(exercise: Exercise):
    path = course_root() / EXERCISES / exercise.name / f"{exercise.name}.ipynb"
    return nbformat.read(path, as_version=4)


def restore(notebook, exercise: Exercise) -> None:
    """Put back every locked cell as it was released; forged or repeated names lose their meaning."""
    original = {grade_id(cell): cell for cell in _released(exercise).cells if grade_id(cell)}
    seen = set()
    for cell in notebook.cells:
        name = grade_id(cell)
        if name in seen or name not in original or original[name].cell_type != cell.cell_type:
            cell.metadata.pop("nbgrader", None)
            continue
        seen.add(name)
        cell.metadata = copy.deepcopy(original[name].metadata)
        if cell.metadata.nbgrader.locked:
            cell.source = original[name].source
    for name, cell in original.items():
        if name not in seen and cell.metadata.nbgrader.grade:
            notebook.cells.append(copy.deepcopy(cell))


def _stand_in(exercise: Exercise, script: str | None):
    """The released notebook, with a script in place of the first answer, or as it is."""
    notebook = _released(exercise)
    if script is not None:
        answers = [cell for cell in notebook.cells if grade_id(cell).startswith("answer-")]
        for cell in answers:
            cell.source = "# see the first answer cell · 见第一个答案单元"
        answers[0].source = script
    return notebook
