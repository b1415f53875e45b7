"""Operators for the habits of people who write attention: what they forget, shorten or make once and for all."""

import ast
from collections.abc import Iterator

import torch

from .places import Place, changed, expression, operator, statement

MINUS_INFINITY = {"-torch.inf", "-math.inf", "-np.inf", "-inf", "-float('inf')", "float('-inf')"}
REMEMBERING = {"remembered by shape"}  # mutants whose answers depend on earlier questions


@operator(ast.BinOp, ast.Call)
def square_root_changed(place: Place) -> Iterator[ast.AST]:
    """The square root of a width is rounded down, or is the half, 2 or 3, which are right for a width of 4 or 9."""
    node = place.node
    if isinstance(node, ast.Call):
        inside, inverse = (node.args[0] if ast.unparse(node.func) == "math.sqrt" else None), False
    else:
        power = ast.unparse(node.right) if isinstance(node.op, ast.Pow) else ""
        inside, inverse = (node.left if power in ("0.5", "-0.5") else None), power == "-0.5"
    if inside is not None:
        for text in ("wrong.isqrt(x)", "(x / 2)", "2.0", "3.0"):
            yield expression(f"1 / {text}" if inverse else text, x=inside)


@operator(ast.UnaryOp, ast.Call)
def infinity_made_finite(place: Place) -> Iterator[ast.AST]:
    """Minus infinity becomes -1e4, or the lowest finite number of the dtype that is filled."""
    if ast.unparse(place.node) in MINUS_INFINITY:
        yield expression("-1e4")
        filled = _filled(place)
        yield (
            expression("torch.finfo(torch.float32).min")
            if filled is None
            else expression("torch.finfo(x.dtype).min", x=filled)
        )


@operator(ast.Call)
def softmax_changed(place: Place) -> Iterator[ast.AST]:
    """The softmax does not subtract the largest score, or takes a score of 0 for a forbidden one."""
    node = place.node
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "softmax":
        return
    is_method = not (isinstance(node.func.value, ast.Name) and node.func.value.id in place.modules)
    given = [node.func.value, *node.args] if is_method else node.args
    for name in ("softmax_without_shift", "softmax_without_zeros"):
        yield changed(node, func=expression(f"wrong.{name}"), args=given)


@operator(ast.Call)
def shift_removed(place: Place) -> Iterator[ast.AST]:
    """`exp(x - m)` becomes `exp(x)`."""
    node = place.node
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("exp", "exp_", "exp2"):
        return
    if node.args and isinstance(node.args[0], ast.BinOp) and isinstance(node.args[0].op, ast.Sub):
        yield changed(node, args=[node.args[0].left])
    inside = node.func.value
    if isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Sub):
        yield changed(node, func=changed(node.func, value=inside.left))


@operator(ast.IfExp)
def falsy_taken_for_none(place: Place) -> Iterator[ast.AST]:
    """`x if x is not None else y` becomes `x or y`."""
    test = place.node.test
    if isinstance(test, ast.Compare) and ast.unparse(test.comparators[0]) == "None":
        given, other = place.node.body, place.node.orelse
        if isinstance(test.ops[0], ast.Is):
            given, other = other, given
        yield ast.BoolOp(ast.Or(), [given, other])


@operator(ast.If)
def falsy_filled_in(place: Place) -> Iterator[ast.AST]:
    """`if x is None: x = y` becomes `if not x: x = y`."""
    test = place.node.test
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) and ast.unparse(test.comparators[0]) == "None":
        yield changed(place.node, test=ast.UnaryOp(ast.Not(), test.left))


@operator(ast.FunctionDef)
def option_wrong(place: Place) -> Iterator[ast.AST]:
    """An option is ignored, or its value 0, 0.0 or False is taken for the default."""
    if not place.is_answer:
        return
    for name, default in _options(place.node):
        yield _beginning(place.node, f"{name} = {default}")
        if default == "True" or default.lstrip("-")[0] in "123456789":
            yield _beginning(place.node, f"{name} = {name} or {default}")


@operator(ast.FunctionDef)
def argument_rounded(place: Place) -> Iterator[ast.AST]:
    """An argument is rounded to float32."""
    if place.is_answer:
        for name in _names(place.node):
            yield _beginning(place.node, f"{name} = wrong.rounded({name})")


@operator(ast.FunctionDef)
def argument_cut(place: Place) -> Iterator[ast.AST]:
    """No gradient reaches an argument."""
    if place.is_answer:
        for name in _names(place.node):
            yield _beginning(place.node, f"{name} = wrong.cut({name})")


@operator(ast.If)
def argument_cut_in_a_branch(place: Place) -> Iterator[ast.AST]:
    """No gradient reaches an argument when a condition holds, or when it does not."""
    if not place.is_answer or not isinstance(place.parent, ast.FunctionDef):
        return
    later = place.parent.body[place.parent.body.index(place.node) :]
    used = {node.id for step in later for node in ast.walk(step) if isinstance(node, ast.Name)}
    asked = {node.id for node in ast.walk(place.node.test) if isinstance(node, ast.Name)}
    for name in _names(place.parent):
        if name in asked or name not in used:
            continue
        line = statement(f"{name} = wrong.cut({name})")
        if not isinstance(place.node.body[-1], ast.Raise):
            yield changed(place.node, body=[line, *place.node.body])
        yield changed(place.node, orelse=[line, *place.node.orelse])


@operator(ast.Call)
def layer_cut(place: Place) -> Iterator[ast.AST]:
    """No gradient flows back through a layer: `self.layer(x)` becomes `self.layer(x).detach()`."""
    function = place.node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self":
        yield expression("wrong.cut(x)", x=place.node)


@operator(ast.Return)
def result_changed(place: Place) -> Iterator[ast.AST]:
    """A result loses its axes of length 1, or no gradient flows through it."""
    if not place.is_answer or place.node.value is None:
        return
    value = place.node.value
    results = value.elts if isinstance(value, ast.Tuple) else [value]
    for index, result in enumerate(results):
        for text in ("x.squeeze()", "wrong.cut(x)"):
            other = [*results[:index], expression(text, x=result), *results[index + 1 :]]
            yield changed(place.node, value=ast.Tuple(other, ast.Load()) if isinstance(value, ast.Tuple) else other[0])


@operator(ast.Return)
def argument_changed_in_place(place: Place) -> Iterator[ast.AST]:
    """An argument is changed in place before this `return`."""
    if not place.is_answer or not isinstance(place.function, ast.FunctionDef) or place.node.value is None:
        return
    rebound = {n.id for n in ast.walk(place.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for name in _names(place.function):
        if name not in rebound:
            yield changed(
                place.node, value=expression(f"wrong.after_changing({name}, result)", result=place.node.value)
            )


@operator(ast.Assign)
def made_in_place(place: Place) -> Iterator[ast.AST]:
    """For an argument, `x = x + y` becomes `x += y`, and `x = x.f(y)` becomes `x.f_(y)`."""
    target, value = place.node.targets[0], place.node.value
    if not isinstance(target, ast.Name) or not isinstance(place.function, ast.FunctionDef):
        return
    if target.id not in _names(place.function):
        return
    if isinstance(value, ast.BinOp) and isinstance(value.left, ast.Name) and value.left.id == target.id:
        yield ast.AugAssign(target, value.op, value.right)
    function = value.func if isinstance(value, ast.Call) else None
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) == target.id:
        in_place = f"{function.attr}_"
        if hasattr(torch.Tensor, in_place):
            yield changed(place.node, value=changed(value, func=changed(function, attr=in_place)))


@operator(ast.FunctionDef)
def remembered_by_shape(place: Place) -> Iterator[ast.AST]:
    """The answer to a question is given again for the next question with the same shapes."""
    if place.is_answer and place.node.name != "__init__":
        yield changed(place.node, decorator_list=[expression("wrong.remembered_by_shape"), *place.node.decorator_list])


@operator(ast.Call)
def view_in_place_of_reshape(place: Place) -> Iterator[ast.AST]:
    """`x.reshape(...)` of an argument becomes `x.view(...)`, which refuses some tensors that are not contiguous."""
    function = place.node.func
    if not isinstance(function, ast.Attribute) or not isinstance(place.function, ast.FunctionDef):
        return
    if function.attr == "reshape" and ast.unparse(function.value) in _names(place.function):
        yield changed(place.node, func=changed(function, attr="view"))


def _filled(place: Place) -> ast.expr | None:
    """The tensor that is filled, if the node is the value of `x.masked_fill(mask, value)`."""
    call = place.parent
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.startswith("masked_fill"):
        return call.func.value
    return None


def _names(function: ast.FunctionDef) -> list[str]:
    """The names of the arguments, without `self`."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [argument.arg for argument in given if argument.arg != "self"]


def _options(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """The arguments that have a default, and the default as text."""
    about = function.args
    given = [*about.posonlyargs, *about.args]
    pairs = [*zip(given[len(given) - len(about.defaults) :], about.defaults, strict=True)]
    for argument, default in [*pairs, *zip(about.kwonlyargs, about.kw_defaults, strict=True)]:
        if default is not None:
            yield argument.arg, ast.unparse(default)


def _beginning(function: ast.FunctionDef, line: str) -> ast.FunctionDef:
    """The function with one more line at its beginning, after the docstring and `super().__init__()`."""
    body = function.body
    start = 0
    while start < len(body) and isinstance(body[start], ast.Expr):
        start += 1
    other: ast.FunctionDef = changed(function, body=[*body[:start], statement(line), *body[start:]])
    return other
