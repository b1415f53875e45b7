"""The right answers of an exercise, and the mutants that are made of them."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.catalogue import Exercise
from autograder.course import course_root, solution_path
from autograder.intake.submission import Cell, Submission, read

from .mutation import Mutation, mutations

RIGHT_ANSWERS = Path("tests") / "right_answers"


@dataclass(frozen=True)
class Source:
    """A right answer: a notebook or a script."""

    name: str  # of the file
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Mutant:
    """A right answer with one place changed, and the parts that the change can affect."""

    source: Source
    cell: int  # which cell is changed
    code: str  # the changed cell
    mutation: Mutation
    parts: tuple[str, ...]

    @property
    def cells(self) -> list[Cell]:
        cells = list(self.source.cells)
        cells[self.cell] = replace(cells[self.cell], source=self.code)
        return cells

    @property
    def line(self) -> str:
        """Where the changed line is: its number, counted from the first line of its cell if there are several cells."""
        within = f"{self.source.cells[self.cell].name}, " if len(self.source.cells) > 1 else ""
        return f"{within}line {self.mutation.line}"


def sources(exercise: Exercise) -> list[Source]:
    """The model solution, and the right answers of the tests if this is a checkout of the course."""
    answers = sorted((course_root() / RIGHT_ANSWERS / exercise.name).glob("*.py"))
    return [_source(exercise, path) for path in (solution_path(exercise.name), *answers)]


def _source(exercise: Exercise, path: Path) -> Source:
    cells, _ = read(Submission("", exercise.name, path), exercise)
    return Source(path.name, tuple(cell for cell in cells if not cell.only_asks))


def mutants_of(exercise: Exercise, answers: Iterable[Source]) -> list[Mutant]:
    """Every mutant of these right answers, in the order of the code. Code that two answers share is changed once.

    A function is changed as a whole in the first answer only: how a right answer is written makes no difference then.
    """
    seen: set[tuple[str, str]] = set()
    found = []
    for number, source in enumerate(answers):
        for mutant, around in _mutants(exercise, source, as_a_whole=number == 0):
            if (around, mutant.mutation.text) not in seen:
                seen.add((around, mutant.mutation.text))
                found.append(mutant)
    return found


def _mutants(exercise: Exercise, source: Source, as_a_whole: bool) -> Iterator[tuple[Mutant, str]]:
    """The mutants of one answer, each with the code that the changed statement needs."""
    parts = [part.name for part in exercise.parts]
    trees = [ast.parse(cell.source).body for cell in source.cells]
    everything = [statement for tree in trees for statement in tree]
    modules = frozenset(name for statement in everything for name in _imports(statement))
    makers = _makers(everything)
    affected = _affected(everything, parts, makers)
    for number, tree in enumerate(trees):
        for position, statement in enumerate(tree):
            if not affected[id(statement)]:
                continue
            needed = _needed(_defines(statement), makers) - {id(statement)}
            around = "\n".join(ast.unparse(other) for other in everything if id(other) in needed)
            for mutation in mutations(statement, parts if as_a_whole else (), modules):
                code = _with(tree, position, mutation.text)
                yield Mutant(source, number, code, mutation, affected[id(statement)]), around


def _with(tree: list[ast.stmt], position: int, text: str) -> str:
    """The code of a cell in which one statement is replaced by `text`."""
    texts = [ast.unparse(statement) for statement in tree]
    return "\n\n".join([*texts[:position], text, *texts[position + 1 :]])


def _makers(statements: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """The statements that define or change each name."""
    makers: dict[str, list[ast.stmt]] = {}
    for statement in statements:
        for name in _defines(statement):
            makers.setdefault(name, []).append(statement)
    return makers


def _affected(
    statements: list[ast.stmt], parts: list[str], makers: dict[str, list[ast.stmt]]
) -> dict[int, tuple[str, ...]]:
    """The parts that a change of each statement can affect, by the id of the statement.

    The answer to a part affects this part, even if other parts call it. A helper affects every part that calls it, directly
    or through others. Imports are never changed.
    """
    needed = {part: _needed({part}, makers) for part in parts}
    found = {}
    for statement in statements:
        own = _defines(statement) & set(parts)
        affected = [part for part in parts if (part in own if own else id(statement) in needed[part])]
        found[id(statement)] = () if isinstance(statement, ast.Import | ast.ImportFrom | ast.Try) else tuple(affected)
    return found


def _needed(names: set[str], makers: dict[str, list[ast.stmt]]) -> set[int]:
    """The ids of the statements that these names need."""
    found: set[int] = set()
    waiting = [*names]
    while waiting:
        for statement in makers.get(waiting.pop(), ()):
            if id(statement) not in found:
                found.add(id(statement))
                waiting += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return found


def _defines(statement: ast.stmt) -> set[str]:
    """The names that a statement defines or changes."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    stored = (ast.Name, ast.Attribute, ast.Subscript)
    targets = [n for n in ast.walk(statement) if isinstance(n, stored) and isinstance(n.ctx, ast.Store)]
    return {next(n.id for n in ast.walk(target) if isinstance(n, ast.Name)) for target in targets}


def _imports(statement: ast.stmt) -> Iterator[str]:
    """The names of the modules that a statement imports; functions that it imports too, because they are no values."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
