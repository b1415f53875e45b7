"""Find the places of a statement that operators may change, and change them one at a time."""

import ast
import copy
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

NOT_BEHAVIOUR = {"annotation", "returns", "decorator_list", "ctx", "type_params"}  # fields that no operator looks into
NOT_SEEN = {"device", "strict"}  # keyword arguments without which the results on a CPU are the same
ENTRIES = {"__init__", "forward"}  # the methods of a class that a suite calls
Function = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class Place:
    """A node of the tree, where it hangs, and what is around it."""

    node: Any  # an ast.AST of one of the kinds that the operator asked for
    parent: ast.AST
    field: str
    index: int | None  # the position in the field, if the field is a list
    function: Function | None  # the innermost function around the node; not the node itself
    where: str  # such as `PackedMHA.forward`
    is_answer: bool  # a suite calls this: a function in `answers`, or a method of a class in `answers`
    modules: frozenset[str]  # names of imported modules

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


@dataclass(frozen=True)
class Mutation:
    """One changed place. `before` and `after` are the changed lines; `text` is the whole changed statement."""

    operator: str
    where: str
    line: int
    before: str
    after: str
    text: str


Operator = Callable[[Place], Iterator[ast.AST]]
OPERATORS: dict[str, tuple[tuple[type[ast.AST], ...], Operator]] = {}


def operator(*kinds: type[ast.AST]) -> Callable[[Operator], Operator]:
    """Register an operator for nodes of these kinds. Its name is the name of the function."""

    def register(function: Operator) -> Operator:
        OPERATORS[function.__name__.replace("_", " ")] = kinds, function
        return function

    return register


def changed(node: Any, **fields: Any) -> Any:
    """A copy of a node with other values in these fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def expression(text: str, **parts: ast.AST) -> ast.expr:
    """The tree of an expression in which each name of `parts` is replaced by that tree."""

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return parts.get(node.id, node)

    filled: ast.expr = Fill().visit(ast.parse(text, mode="eval").body)
    return filled


def statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def mutations(root: ast.stmt, answers: Collection[str], modules: frozenset[str]) -> Iterator[Mutation]:
    """Every mutation of a top-level statement, in the order of the code. No two have the same text.

    Some operators change a function as a whole. They change only the functions and classes named in `answers`.
    A mutation that compiles to the same code as the original is left out. Docstrings are left out too.
    """
    root = _without_docstrings(root)
    holder = ast.Module([root], [])
    original = ast.unparse(root)
    same = _instructions(original)
    seen = {original}
    for place in list(_places(holder, None, "", False, answers, modules)):
        for name, (kinds, function) in OPERATORS.items():
            if not isinstance(place.node, kinds):
                continue
            for node in function(place):
                place.put(node)
                text = ast.unparse(holder)
                place.put(place.node)
                if text not in seen and (code := _instructions(text)) is not None and code != same:
                    seen.add(text)
                    yield Mutation(name, place.where, _line(place, root), *_difference(original, text), text)


def _places(
    node: ast.AST,
    function: Function | None,
    where: str,
    is_answer: bool,
    answers: Collection[str],
    modules: frozenset[str],
) -> Iterator[Place]:
    for field, value in ast.iter_fields(node):
        if field in NOT_BEHAVIOUR:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _says_nothing(child):
                continue
            inside, answer, around = where, is_answer, function
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inside = f"{where}.{child.name}" if where else child.name
                is_entry = child.name in (answers if isinstance(node, ast.Module) else ENTRIES)
                answer = is_entry and (is_answer or not where) and function is None
            yield Place(child, node, field, index, around, inside, answer, modules)
            if isinstance(child, Function):
                around = child
                answer = answer and isinstance(child, ast.FunctionDef)
            if not isinstance(child, ast.Raise):  # what an error says is not examined
                yield from _places(child, around, inside, answer, answers, modules)


def _without_docstrings(root: ast.stmt) -> ast.stmt:
    root = copy.deepcopy(root)
    for node in ast.walk(root):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return root


def _says_nothing(node: ast.AST) -> bool:
    """Imports, assertions, texts, and arguments that no question can see."""
    if isinstance(node, ast.keyword):
        return node.arg in NOT_SEEN
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert | ast.Pass)


def _line(place: Place, root: ast.stmt) -> int:
    for node in (place.node, place.parent, root):
        if hasattr(node, "lineno"):
            return int(node.lineno)
    raise AssertionError("a statement has a line")


def _difference(before: str, after: str) -> tuple[str, str]:
    """The lines that differ. Where lines were only added, a line beside them is in both texts."""
    old, new = before.splitlines(), after.splitlines()
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if start + end == len(old):
        start, end = (start - 1, end) if start else (start, end - 1)
    return tuple(textwrap.dedent("\n".join(lines[start : len(lines) - end])) for lines in (old, new))  # type: ignore[return-value]


def _instructions(text: str) -> CodeType | None:
    """The compiled code without line numbers; None if it does not compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return _without_lines(compile(text, "mutant", "exec", dont_inherit=True))
        except SyntaxError:
            return None


def _without_lines(code: CodeType) -> CodeType:
    constants = tuple(_without_lines(item) if isinstance(item, CodeType) else item for item in code.co_consts)
    return code.replace(co_consts=constants, co_linetable=b"", co_firstlineno=1)
