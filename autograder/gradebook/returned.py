"""The autograded notebook: the student's cells, our outputs, and a number in every check cell.

nbgrader gives full marks to a cell without output, so every check cell gets a number, even if nothing could be run.
"""

import copy
from functools import cache

import nbformat
from nbformat import NotebookNode

from autograder.catalogue import Exercise
from autograder.course import released_path
from autograder.intake.submission import answer_cell, check_cell, grade_id
from autograder.isolation.session import CellRun
from autograder.reports import card
from autograder.results import SubmissionReport


def fill(notebook: NotebookNode, exercise: Exercise, report: SubmissionReport, cells: list[CellRun], lang: str) -> None:
    """Replace all outputs of a submitted notebook by ours, and restore locked cells and missing checks."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in code:
        cell.outputs, cell.execution_count = [], None
    for cell, run in zip(code, cells, strict=False):
        if run.output:
            cell.outputs.append(_printed(run.output))
        if run.broken:
            cell.outputs.append(_printed(run.broken.message[lang] + "\n"))
    restore(notebook, exercise)
    checks = {grade_id(cell): cell for cell in notebook.cells}
    for part in report.parts:
        cell = checks[check_cell(part.id)]
        shown = {"text/html": card.html(part, lang), "text/plain": card.text(part, lang)}
        score = {"text/plain": repr(float(part.score))}
        cell.outputs = [
            NotebookNode(output_type="display_data", data=NotebookNode(shown), metadata=NotebookNode()),
            NotebookNode(
                output_type="execute_result", data=NotebookNode(score), metadata=NotebookNode(), execution_count=None
            ),
        ]


def _printed(text: str) -> NotebookNode:
    """Printed text as an output. nbformat's own function would check it, but the whole notebook is checked when written."""
    return NotebookNode(output_type="stream", name="stdout", text=text)


def filled(
    exercise: Exercise,
    report: SubmissionReport,
    cells: list[CellRun],
    notebook: NotebookNode | None,
    script: str | None,
    lang: str,
) -> NotebookNode:
    """The autograded notebook of one submission: the submitted `notebook`, or a new one that contains the `script`."""
    if notebook is None:
        notebook, cells = _stand_in(exercise, script), []
    fill(notebook, exercise, report, cells, lang)
    return notebook


@cache
def released(exercise: Exercise) -> NotebookNode:
    """The released notebook, read once. Copy it before you change it."""
    return nbformat.read(released_path(exercise.name), as_version=4)


def restore(notebook: NotebookNode, exercise: Exercise) -> None:
    """Put back the released text of every locked cell, and remove forged or repeated cell names."""
    original = {grade_id(cell): cell for cell in released(exercise).cells if grade_id(cell)}
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


def _stand_in(exercise: Exercise, script: str | None) -> NotebookNode:
    """The released notebook. A script, if there is one, replaces the first answer."""
    notebook = copy.deepcopy(released(exercise))
    if script is not None:
        names = {answer_cell(part.name) for part in exercise.parts}
        answers = [cell for cell in notebook.cells if grade_id(cell) in names]
        for cell in answers:
            cell.source = "# see the first answer cell · 见第一个答案单元"
        answers[0].source = script
    return notebook
