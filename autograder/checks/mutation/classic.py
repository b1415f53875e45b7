"""Operators that suit any program: one symbol, number, argument, condition or statement is changed."""

import ast
from collections.abc import Iterator
from typing import Any

from .places import NOT_SEEN, Place, changed, expression, operator

ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
AXES = {"dim", "axis", "dims", "dim0", "dim1", "start_dim", "end_dim"}
TRANSPOSED = {"T", "mT", "H", "mH"}
SYMMETRIC = set("transpose swapaxes swapdims max min maximum minimum logical_and logical_or add mul multiply".split())
MOST_ARGUMENTS = 3  # a call is replaced by one of its first arguments
REMOVABLE = ast.Assign | ast.AugAssign | ast.Expr | ast.If | ast.For | ast.While | ast.With | ast.Delete | ast.Continue


@operator(ast.BinOp, ast.AugAssign)
def arithmetic_swapped(place: Place) -> Iterator[ast.AST]:
    """`+` becomes `-`, `*` becomes `/`, `//` becomes `/`, `**` becomes `*`, `&` becomes `|`, and back."""
    if other := ARITHMETIC.get(type(place.node.op)):
        yield changed(place.node, op=other())
    if isinstance(place.node.op, ast.MatMult) and isinstance(place.node, ast.BinOp):
        yield changed(place.node, left=place.node.right, right=place.node.left)


@operator(ast.BinOp)
def operand_removed(place: Place) -> Iterator[ast.AST]:
    """`a + b` becomes `a` or `b`."""
    yield place.node.left
    yield place.node.right


@operator(ast.Compare)
def comparison_changed(place: Place) -> Iterator[ast.AST]:
    """`<` becomes `<=` or `>`, `==` becomes `!=`, `is` becomes `is not`, and so on."""
    for index, op in enumerate(place.node.ops):
        for other in COMPARISONS[type(op)]:
            yield changed(place.node, ops=_replaced(place.node.ops, index, other()))


@operator(ast.BoolOp)
def and_or_swapped(place: Place) -> Iterator[ast.AST]:
    """`and` becomes `or`, and back."""
    yield changed(place.node, op=ast.Or() if isinstance(place.node.op, ast.And) else ast.And())


@operator(ast.UnaryOp)
def sign_removed(place: Place) -> Iterator[ast.AST]:
    """`-x`, `~x` and `not x` become `x`."""
    yield place.node.operand


@operator(ast.expr)
def condition_negated(place: Place) -> Iterator[ast.AST]:
    """A condition is reversed."""
    if _is_condition(place):
        yield ast.UnaryOp(ast.Not(), place.node)


@operator(ast.expr)
def condition_forced(place: Place) -> Iterator[ast.AST]:
    """A condition is always true, or never. A `while` is never made endless."""
    if _is_condition(place):
        if not isinstance(place.parent, ast.While):
            yield ast.Constant(True)
        yield ast.Constant(False)


@operator(ast.IfExp)
def one_side_only(place: Place) -> Iterator[ast.AST]:
    """`x if condition else y` becomes `x` or `y`."""
    yield place.node.body
    yield place.node.orelse


@operator(ast.Constant)
def constant_changed(place: Place) -> Iterator[ast.AST]:
    """n becomes n + 1 or n - 1, 0 becomes 1, a float grows by a tenth, True becomes False and back."""
    value = place.node.value
    if isinstance(place.parent, ast.arguments) and not place.is_answer:
        return
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        if not _is_negated(place):
            yield ast.Constant(value + 1)
            if value > 0:
                yield ast.Constant(value - 1)
    elif isinstance(value, float):
        yield ast.Constant(1.1 * value or 0.1)


@operator(ast.UnaryOp)
def negative_constant_changed(place: Place) -> Iterator[ast.AST]:
    """-1, often an axis, becomes -2 or 0."""
    operand = place.node.operand
    is_number = isinstance(operand, ast.Constant) and type(operand.value) is int
    if isinstance(place.node.op, ast.USub) and is_number:
        yield _number(-operand.value - 1)
        yield _number(-operand.value + 1)


@operator(ast.arguments)
def default_changed(place: Place) -> Iterator[ast.AST]:
    """A default of None becomes 0, and a default dtype becomes float64. Numbers are changed by `constant changed`."""
    if not place.is_answer:
        return
    for field in ("defaults", "kw_defaults"):
        values = getattr(place.node, field)
        for index, value in enumerate(values):
            if isinstance(value, ast.Constant) and value.value is None:
                yield changed(place.node, **{field: _replaced(values, index, ast.Constant(0))})
            elif isinstance(value, ast.Attribute):
                yield changed(place.node, **{field: _replaced(values, index, expression("torch.float64"))})


@operator(ast.stmt)
def statement_deleted(place: Place) -> Iterator[ast.AST]:
    """A statement is deleted. What returns or defines something stays."""
    if isinstance(place.node, REMOVABLE) and place.function is not None:
        yield ast.Pass()


@operator(ast.Raise)
def error_changed(place: Place) -> Iterator[ast.AST]:
    """An error is not raised, or is a TypeError in place of a ValueError."""
    yield ast.Pass()
    raised = place.node.exc
    if isinstance(raised, ast.Call):
        yield changed(place.node, exc=changed(raised, func=ast.Name("TypeError")))


@operator(ast.Call)
def keyword_dropped(place: Place) -> Iterator[ast.AST]:
    """A keyword argument is left out. `device=` and `strict=` stay, because no question on a CPU can miss them."""
    for keyword in place.node.keywords:
        if keyword.arg not in NOT_SEEN:
            yield changed(place.node, keywords=[other for other in place.node.keywords if other is not keyword])


@operator(ast.Call)
def arguments_swapped(place: Place) -> Iterator[ast.AST]:
    """Two neighbouring positional arguments change places, unless the order makes no difference."""
    if ast.unparse(place.node.func).rpartition(".")[2] in SYMMETRIC:
        return
    given = place.node.args
    for index in range(len(given) - 1):
        if not any(isinstance(one, ast.Starred) for one in given[index : index + 2]):
            yield changed(place.node, args=[*given[:index], given[index + 1], given[index], *given[index + 2 :]])


@operator(ast.Call)
def method_skipped(place: Place) -> Iterator[ast.AST]:
    """`x.f(...)` becomes `x`. Casts to float64 and moves between devices stay, because no question misses them."""
    function = place.node.func
    moves = any(isinstance(given, ast.Attribute) and given.attr == "device" for given in place.node.args)
    if not isinstance(function, ast.Attribute) or function.attr in ("double", "cpu") or moves:
        return
    if not _is_name(function.value, place.modules | {"self"}):
        yield function.value


@operator(ast.Call)
def call_skipped(place: Place) -> Iterator[ast.AST]:
    """`f(x, y)` becomes `x` or `y`."""
    for value in place.node.args[:MOST_ARGUMENTS]:
        if not isinstance(value, ast.Starred):
            yield value


@operator(ast.keyword)
def axis_changed(place: Place) -> Iterator[ast.AST]:
    """An axis given by name is the last one or the first one, whatever was asked for."""
    if place.node.arg in AXES:
        yield changed(place.node, value=_number(-1))
        yield changed(place.node, value=ast.Constant(0))


@operator(ast.Attribute)
def transpose_removed(place: Place) -> Iterator[ast.AST]:
    """`x.T` and `x.mT` become `x`."""
    if place.node.attr in TRANSPOSED:
        yield place.node.value


@operator(ast.Slice)
def slice_shifted(place: Place) -> Iterator[ast.AST]:
    """A bound of a slice moves by one, or is left out."""
    for field, first in (("lower", 1), ("upper", -1)):
        bound = getattr(place.node, field)
        if bound is None:
            yield changed(place.node, **{field: _number(first)})
        else:
            yield changed(place.node, **{field: None})
            yield from (changed(place.node, **{field: other}) for other in _neighbours(bound))


@operator(ast.Subscript)
def index_changed(place: Place) -> Iterator[ast.AST]:
    """An index that is computed moves by one, and an axis made by None is left out."""
    index = place.node.slice
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    for position, item in enumerate(items):
        if isinstance(item, ast.Name | ast.BinOp):
            replaced = _replaced(items, position, expression("x - 1", x=item))
        elif isinstance(item, ast.Constant) and item.value is None and len(items) > 1:
            replaced = [*items[:position], *items[position + 1 :]]
        else:
            continue
        yield changed(place.node, slice=ast.Tuple(replaced, ast.Load()) if len(replaced) > 1 else replaced[0])


def _is_condition(place: Place) -> bool:
    if place.field == "test":
        return isinstance(place.parent, ast.If | ast.While | ast.IfExp)
    return place.field == "ifs"


def _is_negated(place: Place) -> bool:
    return isinstance(place.parent, ast.UnaryOp) and isinstance(place.parent.op, ast.USub)


def _is_name(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression is one of these names, or an attribute of a module such as `torch.nn.functional`."""
    while isinstance(node, ast.Attribute) and not _is_self(node.value):
        node = node.value
    return isinstance(node, ast.Name) and node.id in names


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _number(value: int) -> ast.expr:
    return ast.UnaryOp(ast.USub(), ast.Constant(-value)) if value < 0 else ast.Constant(value)


def _neighbours(node: ast.expr) -> Iterator[ast.expr]:
    if not isinstance(node, ast.Constant | ast.UnaryOp):  # numbers are changed by `constant changed`
        yield expression("x + 1", x=node)
        yield expression("x - 1", x=node)


def _replaced(items: list[Any], index: int, item: Any) -> list[Any]:
    return [*items[:index], item, *items[index + 1 :]]
