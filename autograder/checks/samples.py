"""Sample submissions, made from the course itself: right, untouched, and wrong in each known way.

The audit, the tests and the benchmarks grade them.
"""

import ast
import copy
import importlib
import inspect
from functools import cache
from itertools import zip_longest
from pathlib import Path
from types import ModuleType

import nbformat
from nbformat import NotebookNode

from autograder import mistakes as mistakes_package
from autograder import reference as reference_package
from autograder.catalogue import Exercise
from autograder.course import released_path, solution_path
from autograder.intake.submission import answer_cell, grade_id
from autograder.mistakes import Mistake


def solution(exercise: Exercise) -> NotebookNode:
    return nbformat.read(solution_path(exercise.name), as_version=4)


def untouched(exercise: Exercise) -> NotebookNode:
    return nbformat.read(released_path(exercise.name), as_version=4)


def with_answer(notebook: NotebookNode, part: str, source: str) -> NotebookNode:
    """A copy in which the answer to one part is this code."""
    changed = copy.deepcopy(notebook)
    for cell in changed.cells:
        if grade_id(cell) == answer_cell(part):
            cell.source = source
    return changed


def with_mistake(exercise: Exercise, mistake: Mistake) -> NotebookNode:
    """The model solution, wrong in one part."""
    return with_answer(solution(exercise), mistake.part, mistake_source(exercise, mistake))


def with_mistakes(exercise: Exercise, mistakes: list[Mistake]) -> NotebookNode:
    """Wrong in several parts at once. The other parts use the reference, so that they do not call a wrong part."""
    chosen = {mistake.part: mistake for mistake in mistakes}
    notebook = solution(exercise)
    for part in exercise.parts:
        lines = (
            mistake_source(exercise, chosen[part.name])
            if part.name in chosen
            else "\n\n".join([*_reference(exercise, {part.name}), f"{part.name} = right.{part.name}"])
        )
        notebook = with_answer(notebook, part.name, lines)
    return notebook


def in_as_few_as_possible(mistakes: list[Mistake]) -> list[list[Mistake]]:
    """Distribute the mistakes over as few submissions as possible, at most one per part."""
    by_part: dict[str, list[Mistake]] = {}
    for mistake in mistakes:
        by_part.setdefault(mistake.part, []).append(mistake)
    return [[mistake for mistake in row if mistake] for row in zip_longest(*by_part.values())]


def mistake_source(exercise: Exercise, mistake: Mistake) -> str:
    """Self-contained code of a mistake: what it needs from its module and the reference, under the name of the part."""
    wrong = _needed(_module(mistakes_package, exercise), {mistake.name})
    leans_on = {
        node.attr
        for node in ast.walk(ast.parse(wrong))
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "right"
    }
    return "\n\n".join([*_reference(exercise, leans_on), wrong, f"{mistake.part} = {mistake.name}"])


def _reference(exercise: Exercise, names: set[str]) -> list[str]:
    if not names:
        return []
    source = _needed(_module(reference_package, exercise), names)
    right = "right = globals().get('right') or types.ModuleType('right')"  # an earlier cell may have made it
    return [f"import types\n\n{right}\nexec({source!r}, vars(right))"]


def _needed(module: ModuleType, names: set[str]) -> str:
    """The statements of a module that these names need, without our decorators."""
    statements = _statements(module)
    made = {name: statement for statement in statements for name in _makes(statement)}
    needed: list[ast.stmt] = []
    open_names = set(names)
    while open_names:
        statement = made.get(open_names.pop())
        if statement is not None and statement not in needed:
            needed.append(statement)
            open_names |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return "\n\n".join(ast.unparse(statement) for statement in statements if statement in needed)


@cache
def _statements(module: ModuleType) -> list[ast.stmt]:
    found = [
        statement
        for statement in ast.parse(inspect.getsource(module)).body
        if not (isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("autograder"))
    ]
    for statement in found:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            statement.decorator_list = [
                mark for mark in statement.decorator_list if getattr(getattr(mark, "func", None), "id", "") != "mistake"
            ]
    return found


def _makes(statement: ast.stmt) -> list[str]:
    """The names that a statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    return [target.id for target in getattr(statement, "targets", []) if isinstance(target, ast.Name)]


def as_script(notebook: NotebookNode) -> str:
    """The code cells as one `.py` file."""
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


def hand_in(folder: Path, student: str, exercise: Exercise, work: NotebookNode | str) -> Path:
    """Put a notebook, or a script given as text, where the grader looks for it."""
    place = folder / student / exercise.name
    place.mkdir(parents=True, exist_ok=True)
    if isinstance(work, str):
        path = place / f"{exercise.name}.py"
        path.write_text(work, encoding="utf-8")
    else:
        path = place / f"{exercise.name}.ipynb"
        nbformat.write(work, path)
    return path


def _module(package: ModuleType, exercise: Exercise) -> ModuleType:
    return importlib.import_module(f"{package.__name__}.{exercise.module}")
