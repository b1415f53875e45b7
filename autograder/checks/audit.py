"""Audit the course: wrong answers fail, right answers pass, and all files agree with each other."""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import nbformat
from rich.console import Console

from autograder.catalogue import Exercise, Part, catalogue
from autograder.course import EXERCISES, PACKAGE, SOLUTIONS, course_root, notebook_in
from autograder.exam.diagnosis import diagnose
from autograder.exam.examiner import PartResult, examination, one_thread
from autograder.exam.proxy import Local, Student
from autograder.exam.symptoms import LEARNERS_SALT, broken_by, examined, symptoms
from autograder.gradebook.release import ReleaseError, is_current
from autograder.hints import afterwards, hints
from autograder.intake.submission import answer_cell, check_cell, grade_id
from autograder.learner.check_files import examine_file
from autograder.mistakes import Mistake, mistakes_of
from autograder.verdicts import Broken, Verdict

from . import non_answers, translations

SALTS = ("audit one", "audit two")
MANY_SALTS = [f"audit {number}" for number in range(40)]  # a mistake must fail on every one of them
CHINESE = re.compile(r"[一-鿿]")
TREES = {
    PACKAGE / "reference": "ch{}.py",
    PACKAGE / "mistakes": "ch{}.py",
    PACKAGE / "suites": "test_{}.py",
    PACKAGE / "hints": "{}.toml",
    PACKAGE / "symptoms": "{}.json",
    PACKAGE / "mutants": "{}.toml",
}
ALSO_ALLOWED = {"__init__.py", "conftest.py"}


def audit(exercises: list[Exercise], console: Console) -> bool:
    """Check everything, print every fault with its file, and print how much was proved. True if there is no fault."""
    root = course_root()
    proved = {"exercises": 0, "parts": 0, "promises": 0, "mistakes": 0}
    faults = _print_faults(_files(root), console) + _print_faults(translations.faults(root), console)
    for exercise, found in zip(exercises, _in_parallel(exercises), strict=True):
        console.print(f"{exercise.name} …", markup=False)
        faults += _print_faults(found, console)
        if not found:
            proved["exercises"] += 1
            proved["parts"] += len(exercise.parts)
            proved["promises"] += len(examination(exercise).tests)
            proved["mistakes"] += len(mistakes_of(exercise.module))
    counts = ", ".join(f"{count} {name}" for name, count in proved.items())
    console.print(f"proved: {counts}; {faults} {'fault' if faults == 1 else 'faults'}")
    return not faults


def _in_parallel(exercises: list[Exercise]) -> Iterator[list[str]]:
    """The faults of each exercise, in order. Several exercises are checked in parallel."""
    names = [exercise.name for exercise in exercises]
    if len(names) == 1:
        yield _faults(names[0])
        return
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        yield from pool.map(_faults, names)


def _faults(name: str) -> list[str]:
    with one_thread():
        return list(_exercise(catalogue()[name], course_root()))


def _print_faults(faults: Iterable[str], console: Console) -> int:
    """Print each fault as soon as it is found. Returns how many there were."""
    count = 0
    for fault in faults:
        console.print(f"  ✗ {fault}", markup=False)
        count += 1
    return count


def _files(root: Path) -> Iterator[str]:
    """Every exercise has all its files, and every file belongs to an exercise."""
    for folder, pattern in TREES.items():
        expected = {pattern.format(name) for name in catalogue()}
        present = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
        yield from (f"missing: {_short(folder / name, root)}" for name in sorted(expected - present))
        yield from (f"unlisted: {_short(folder / name, root)}" for name in sorted(present - expected - ALSO_ALLOWED))
    for tree in (SOLUTIONS, EXERCISES):
        expected = {f"{name}/{name}.ipynb" for name in catalogue()}
        present = {str(path.relative_to(root / tree)) for path in (root / tree).rglob("*") if path.is_file()}
        present = {name for name in present if ".ipynb_checkpoints" not in name}
        yield from (f"missing: {tree}/{name}" for name in sorted(expected - present))
        yield from (f"unlisted: {tree}/{name}" for name in sorted(present - expected))


def _exercise(exercise: Exercise, root: Path) -> Iterator[str]:
    try:
        yield from _names(exercise)
        yield from _notebook(exercise, root)
        yield from _reference(exercise)
        yield from _non_answers(exercise)
        yield from _mistakes(exercise)
        yield from _solution(exercise, root)
        yield from _released(exercise, root)
    except (OSError, LookupError, ImportError, SyntaxError, AttributeError, ValueError, ReleaseError) as fault:
        yield f"{exercise.name}: {type(fault).__name__}: {fault}"


def _names(exercise: Exercise) -> Iterator[str]:
    """Catalogue, reference, mistakes and hints name the same parts with the same signatures."""
    names = [part.name for part in exercise.parts]
    reference = importlib.import_module(f"autograder.reference.{exercise.module}")
    for part in exercise.parts:
        where = f"autograder/reference/{exercise.module}.py"
        if not hasattr(reference, part.name):
            yield f"{where}: no {part.name}"
        elif not _same_signature(getattr(reference, part.name), part):
            yield f"{where}: {part.name}{inspect.signature(getattr(reference, part.name))}, catalogue: {part.signature}"
        if part.name not in {mistake.part for mistake in mistakes_of(exercise.module)}:
            yield f"autograder/mistakes/{exercise.module}.py: no mistake of {part.name}"
    for mistake in mistakes_of(exercise.module):
        if mistake.part not in names:
            yield f"autograder/mistakes/{exercise.module}.py: {mistake.name} is about {mistake.part}, which is no part"
        if not CHINESE.search(mistake.text.zh):
            yield f"autograder/mistakes/{exercise.module}.py: {mistake.name} says nothing in Chinese"
    given = hints(exercise)
    if list(given) != names:
        yield f"autograder/hints/{exercise.name}.toml: hints for {list(given)}, parts are {names}"
    afterwards(exercise)  # raises LookupError when a language is missing


def _same_signature(function: Any, part: Part) -> bool:
    """Whether a function, or the `__init__` of a class, has the signature of the catalogue. Annotations do not count."""
    found = _arguments(textwrap.dedent(inspect.getsource(function)))
    for argument in found.args:
        argument.annotation = None
    return ast.unparse(found) == ast.unparse(_arguments(f"def f{part.signature}: ..."))


def _arguments(source: str) -> ast.arguments:
    """The arguments of the function that this code defines. For a class: those of its `__init__`, without `self`."""
    defined = ast.parse(source).body[0]
    if isinstance(defined, ast.ClassDef):
        init = next(node for node in defined.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
        init.args.args.pop(0)
        return init.args
    assert isinstance(defined, ast.FunctionDef)
    return defined.args


def _notebook(exercise: Exercise, root: Path) -> Iterator[str]:
    """The solution has an answer cell and a check cell per part, is written in both languages and contains no outputs."""
    where = notebook_in(SOLUTIONS, exercise.name)
    cells = nbformat.read(root / where, as_version=4).cells
    named = {grade_id(cell): cell for cell in cells if grade_id(cell)}
    expected = {"setup"} | {name(part.name) for part in exercise.parts for name in (answer_cell, check_cell)}
    if set(named) != expected:
        yield f"{where}: cells {sorted(set(named) ^ expected)} are too many or too few"
        return
    for part in exercise.parts:
        cell_name = check_cell(part.name)
        check = named[cell_name]
        if check.metadata.nbgrader.points != part.points:
            yield f"{where}: {cell_name} gives {check.metadata.nbgrader.points} points, not {part.points}"
        if check.source != f'check("{part.name}")':
            yield f'{where}: {cell_name} must be exactly check("{part.name}")'
        wanted = f"`{part.name}` · {part.points} points · {part.minutes} min · {'★' * part.difficulty:☆<5}"
        if not any(wanted in cell.source for cell in cells if cell.cell_type == "markdown"):
            yield f"{where}: no heading says: {wanted}"
    for cell in cells:
        if cell.cell_type == "code" and (cell.outputs or cell.execution_count):
            yield f"{where}: {grade_id(cell) or 'a cell'} contains outputs"
        if cell.cell_type == "markdown" and not (
            CHINESE.search(cell.source) and re.search(r"[A-Za-z]{3}", cell.source)
        ):
            yield f"{where}: a text cell is in one language only: {cell.source[:40]!r}"


def _reference(exercise: Exercise) -> Iterator[str]:
    for salt in SALTS:
        for result in examination(exercise).examine(Student(Local(examination(exercise).right)), salt):
            if broken := result.first_broken:
                yield f"autograder/suites/test_{exercise.name}.py: {broken.test} fails the reference: {broken.broken}"


def _non_answers(exercise: Exercise) -> Iterator[str]:
    """A worthless answer keeps no promise and does not make the examiner fail."""
    where = f"autograder/suites/test_{exercise.name}.py"
    for part in exercise.parts:
        right = examination(exercise).right
        for name, answer in non_answers.answers(part, right[part.name]).items():
            student = Student(Local(right | {part.name: answer}))
            result = examination(exercise).examine(student, SALTS[0], [part])[0]
            for outcome in result.outcomes:
                if outcome.broken is None:
                    yield f"{where}: {outcome.test} is kept by {name}"
                elif outcome.broken.verdict is Verdict.GRADER_ERROR:
                    yield f"{where}: {outcome.test} fails on {name}: {outcome.broken}"


def _mistakes(exercise: Exercise) -> Iterator[str]:
    for mistake in mistakes_of(exercise.module):
        where = f"autograder/mistakes/{exercise.module}.py: {mistake.name}"
        for salt in (LEARNERS_SALT, *SALTS):
            result = examined(exercise, mistake, salt)
            if salt == LEARNERS_SALT and broken_by(result) != symptoms(exercise).get(mistake.name):
                yield (
                    f"autograder/symptoms/{exercise.name}.json: {mistake.name} breaks {', '.join(broken_by(result))}; the "
                    f"record says something else; run `autograder record symptoms {exercise.name}`"
                )
            if result.verdict is Verdict.PASS:
                yield f"{where} is accepted by autograder/suites/test_{exercise.name}.py"
                continue
            named = diagnose(exercise, result, salt)
            if named is None or named.name != mistake.name:
                yield f"{where} is called {named.name if named else 'nothing'}"
        if lucky := [salt for salt in MANY_SALTS if not _is_rejected(exercise, mistake, result, salt)]:
            yield f"{where} is accepted on {len(lucky)} of {len(MANY_SALTS)} salts, for example on {lucky[0]!r}"


def _is_rejected(exercise: Exercise, mistake: Mistake, before: PartResult, salt: str) -> bool:
    """Whether a mistake is rejected on this salt. The promises it broke before come first, because one is usually enough."""
    exam = examination(exercise)
    answers = exam.right | {mistake.part: mistake.answer}
    return any(
        exam.outcome(outcome.test, Student(Local(answers)), salt).broken
        for outcome in sorted(before.outcomes, key=lambda outcome: outcome.broken is None)
    )


def _solution(exercise: Exercise, root: Path) -> Iterator[str]:
    where = notebook_in(SOLUTIONS, exercise.name)
    try:
        results, raised = examine_file(exercise, root / where, SALTS[0])
    except Broken as unreadable:
        yield f"{where}: {unreadable}"
        return
    yield from (f"{where}: {line}" for line in raised)
    for result in results:
        if broken := result.first_broken:
            yield f"{where}: {result.part.name} gets {result.score:g}/{result.part.points}: {broken.broken}"


def _released(exercise: Exercise, root: Path) -> Iterator[str]:
    where = notebook_in(EXERCISES, exercise.name)
    if not is_current(exercise, root):
        yield f"{where}: differs from a fresh release of its solution; run `autograder release {exercise.name}`"
    try:
        results, _ = examine_file(exercise, root / where, SALTS[0])
    except Broken as unreadable:
        yield f"{where}: {unreadable}"
        return
    for result in results:
        if result.score or result.verdict is not Verdict.MISSING:
            yield f"{where}: {result.part.name} is {result.verdict} with {result.score:g} points as released"


def _short(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
