"""Submissions of known worth, made from the course itself: right, untouched, and wrong in each known way.

They are what the audit, the tests and the benchmarks grade.
"""

import copy
import inspect
import re
from itertools import zip_longest
from pathlib import Path

import nbformat

from . import mistakes as mistakes_package
from . import reference as reference_package
from .catalogue import Exercise
from .mistakes import Mistake
from .release import EXERCISES, SOLUTIONS, course_root
from .submission import grade_id


def solution(exercise: Exercise):
    return nbformat.read(course_root() / SOLUTIONS / exercise.name / f"{exercise.name}.ipynb", as_version=4)


def untouched(exercise: Exercise):
    return nbformat.read(course_root() / EXERCISES / exercise.name / f"{exercise.name}.ipynb", as_version=4)


def with_answer(notebook, part: str, source: str):
    """A copy in which the answer to one part is this code."""
    changed = copy.deepcopy(notebook)
    for cell in changed.cells:
        if grade_id(cell) == f"answer-{part}":
            cell.source = source
    return changed


def with_mistake(exercise: Exercise, mistake: Mistake):
    """The model solution, wrong in one part."""
    return with_answer(solution(exercise), mistake.part, mistake_source(exercise, mistake))


def with_mistakes(exercise: Exercise, mistakes: list[Mistake]):
    """Wrong in several parts at once; the others answer with the reference, so that no part leans on a wrong one."""
    chosen = {mistake.part: mistake for mistake in mistakes}
    notebook = solution(exercise)
    for part in exercise.parts:
        lines = (
            mistake_source(exercise, chosen[part.name])
            if part.name in chosen
            else "\n".join([*_reference(exercise), f"{part.name} = right.{part.name}"])
        )
        notebook = with_answer(notebook, part.name, lines)
    return notebook


def in_as_few_as_possible(mistakes: list[Mistake]) -> list[list[Mistake]]:
    """Share the mistakes out over submissions, at most one for each part."""
    by_part: dict[str, list[Mistake]] = {}
    for mistake in mistakes:
        by_part.setdefault(mistake.part, []).append(mistake)
    return [[mistake for mistake in row if mistake] for row in zip_longest(*by_part.values())]


def mistake_source(exercise: Exercise, mistake: Mistake) -> str:
    """Code that stands alone: the reference it leans on, the mistakes of the chapter, and the name it is asked by."""
    wrong = inspect.getsource(_module(mistakes_package, exercise))
    return "\n".join(
        [
            *_reference(exercise),
            "mistake = lambda *about, **text: lambda answer: answer",
            re.sub(r"^from autograder.*$", "", wrong, flags=re.MULTILINE),
            f"{mistake.part} = {mistake.name}",
        ]
    )


def _reference(exercise: Exercise) -> list[str]:
    source = inspect.getsource(_module(reference_package, exercise))
    return ["import types", "right = types.ModuleType('right')", f"exec({source!r}, vars(right))"]


def as_script(notebook) -> str:
    """The code cells as one `.py` file."""
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


def hand_in(folder: Path, student: str, exercise: Exercise, work) -> Path:
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


def _module(package, exercise: Exercise):
    return __import__(f"{package.__name__}.{exercise.module}", fromlist=["*"])
