"""Compare an answer with the truth: structure, shape, dtype, then values, within a measured tolerance."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from autograder.catalogue import catalogue
from autograder.language import NOTHING, Text
from autograder.student.autograd import starts
from autograder.student.nested import leaves
from autograder.verdicts import Broken, require, wrong

from . import evidence
from .proxy import Key, Student
from .tolerance import expectation, key_of

Formula = Callable[..., Any]  # a reference function; its name is the name of the part
Cotangents = Sequence[torch.Tensor | None]
FLOAT64_DIGITS_LOST = (
    1e-12,
    1e-5,
)  # errors of this size, as a share of the largest value, are what float32 inside float64 makes


def matches(student: Student, formula: Formula, *args: Any, **kwargs: Any) -> Any:
    """The student's function of the same name gives what `formula` gives. Returns the student's value."""
    value = getattr(student, formula.__name__)(*args, **kwargs)
    agree(value, formula, *args, **kwargs)
    return value


def left_alone(student: Student, formula: Formula, *args: Any) -> None:
    """The inputs are not changed, and a second call is right too."""
    name = formula.__name__
    require(not student.changes_inputs(name, *args), f"{name}: the inputs were changed", f"{name}：输入被改动了")
    matches(student, formula, *args)


def gradients_match(
    student: Student, formula: Formula, *args: Any, wrt: Sequence[Key], cotangents: Cotangents, **kwargs: Any
) -> None:
    """The value and the gradients with respect to the arguments in `wrt` are those of `formula`."""
    found = student.vjp(formula.__name__, *args, wrt=wrt, cotangents=cotangents, **kwargs)
    agree(found.value, formula, *args, **kwargs)
    agree_gradients(found.gradients, formula, *args, wrt=wrt, cotangents=cotangents, **kwargs)


def agree_gradients(
    gradients: Cotangents, formula: Formula, /, *args: Any, wrt: Sequence[Key], cotangents: Cotangents, **kwargs: Any
) -> None:
    """Compare gradients with those of `formula`, computed by autograd in float64. None counts as a zero gradient."""
    given = [args[key] if isinstance(key, int) else kwargs[key] for key in wrt]
    filled = tuple(torch.zeros_like(x) if g is None else g for g, x in zip(gradients, given, strict=True))
    derivative = Derivative(formula, tuple(wrt), tuple(cotangents))
    try:
        agree(filled, derivative, *args, **kwargs)
    except Broken as broken:
        truth = expectation(derivative, args, kwargs).truth
        for name, gradient, true in zip(derivative.returns, gradients, truth, strict=True):
            if gradient is None and true.any():
                _say_that_no_gradient_arrives(broken, f"{formula.__name__} → {name}")
                break
        raise


def _say_that_no_gradient_arrives(broken: Broken, label: str) -> None:
    en = f"{label}: no gradient arrives; look for `no_grad`, `detach`, `.data`, `.item()` or a new `nn.Parameter`"
    zh = f"{label}：没有梯度传到这里；检查 `no_grad`、`detach`、`.data`、`.item()` 或新建的 `nn.Parameter`"
    broken.message = Text(en, zh)
    broken.args = (en,)


class Derivative:
    """The gradients of a formula, as a formula themselves."""

    def __init__(self, formula: Formula, wrt: tuple[Key, ...], cotangents: tuple[torch.Tensor | None, ...]):
        self.formula, self.wrt, self.cotangents = formula, wrt, cotangents
        self.__name__ = formula.__name__
        self.returns = tuple(f"∂/∂{_parameter_name(formula, key)}" for key in wrt)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
        return vjp(self.formula, args, kwargs, self.wrt, self.cotangents)

    def key(self) -> Any:
        return key_of((getattr(self.formula, "key", lambda: id(self.formula))(), self.wrt, self.cotangents))


def vjp(
    formula: Formula, args: Sequence[Any], kwargs: dict[str, Any], wrt: Sequence[Key], cotangents: Cotangents
) -> tuple[torch.Tensor, ...]:
    """The gradients of `formula`'s outputs, weighted by `cotangents`."""
    given: dict[Key, Any] = dict([*enumerate(args), *kwargs.items()])
    inputs = []
    for key in wrt:
        given[key] = given[key].detach().clone().requires_grad_(True)
        inputs.append(given[key])
    value = formula(*(given[i] for i in range(len(args))), **{name: given[name] for name in kwargs})
    outputs = value if isinstance(value, tuple) else (value,)
    used = [(out, weight.to(out)) for out, weight in zip(outputs, cotangents, strict=True) if weight is not None]
    found = torch.autograd.grad(list(starts(used)), inputs, allow_unused=True)
    return tuple(torch.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True))


def agree(value: Any, formula: Formula, /, *args: Any, **kwargs: Any) -> None:
    """Raise `Broken` unless `value` is what `formula` gives: structure, shape, dtype, then values."""
    try:
        _agree(value, formula, args, kwargs)
    except Broken as broken:
        evidence.name_inputs(broken, formula, args, kwargs)
        raise


def _agree(value: Any, formula: Formula, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    name = formula.__name__
    expected = expectation(formula, args, kwargs)
    answers = _same_structure(value, expected.wanted, name)
    for label, answer, form, true, error in zip(
        _labels(formula, name, expected.wanted),
        answers,
        leaves(expected.wanted),
        expected.truth,
        expected.allowed,
        strict=True,
    ):
        if isinstance(form, torch.Tensor):
            _agree_tensor(label, answer, form, true, error)
        else:
            require(
                type(answer) in (int, float, bool, str) and answer == form,
                f"{label}: {answer!r}, expected {form!r}",
                f"{label}：得到 {answer!r}，应为 {form!r}",
            )


def _agree_tensor(label: str, answer: Any, form: torch.Tensor, true: torch.Tensor, error: float) -> None:
    require(
        isinstance(answer, torch.Tensor),
        f"{label}: a {type(answer).__name__}, expected a tensor",
        f"{label}：得到 {type(answer).__name__}，应为张量",
    )
    require(
        answer.shape == form.shape,
        f"{label}: shape {list(answer.shape)}, expected {list(form.shape)}",
        f"{label}：形状为 {list(answer.shape)}，应为 {list(form.shape)}",
    )
    require(
        answer.dtype == form.dtype,
        f"{label}: dtype {_short(answer.dtype)}, expected {_short(form.dtype)}",
        f"{label}：dtype 为 {_short(answer.dtype)}，应为 {_short(form.dtype)}",
    )
    if not form.numel():
        return
    got, true = answer.double(), true.double()
    off = (got - true).abs()
    off[got == true] = 0.0  # equal infinities
    off[off.isnan()] = torch.inf
    if off.max() <= error:
        return
    worst = int(off.argmax())
    index = [int(i) for i in np.unravel_index(worst, tuple(form.shape))]  # PyTorch's own function imports SymPy
    yours, expected = got.flatten()[worst].item(), true.flatten()[worst].item()
    if form.is_floating_point() and off.max() == torch.inf:
        en, zh = f"not the same at {index}", f"在 {index} 处不相同"
    elif form.is_floating_point():
        en = f"off by {off.max():.3g} at {index}; {error:.2g} is allowed"
        zh = f"在 {index} 处相差 {off.max():.3g}，允许 {error:.2g}"
    else:
        share = (off > 0).double().mean()
        en, zh = f"{share:.0%} of the entries differ, first at {index}", f"{share:.0%} 的元素不同，首个在 {index}"
        yours, expected = _exact(yours, form), _exact(expected, form)
    mine, theirs = _told_apart(yours, expected)
    lost = _lost_digits(off, true) if form.dtype is torch.float64 else NOTHING
    broken = wrong(
        f"{label}: {en}\n  yours {mine}, expected {theirs}{lost.en}",
        f"{label}：{zh}\n  你的 {mine}，应为 {theirs}{lost.zh}",
    )
    evidence.lay_side_by_side(broken, answer, true.to(form.dtype), index)
    raise broken


def _same_structure(value: Any, wanted: Any, name: str) -> list[Any]:
    """The leaves of `value`, which must have the same structure as `wanted`."""
    if isinstance(wanted, tuple | list):
        kind = "pair" if len(wanted) == 2 else f"tuple of {len(wanted)}"
        require(
            isinstance(value, tuple | list) and len(value) == len(wanted),
            f"{name}: returns {_described(value)}, expected a {kind}",
            f"{name}：返回了 {_described(value)}，应为 {len(wanted)} 个值的元组",
        )
        return [leaf for v, w in zip(value, wanted, strict=True) for leaf in _same_structure(v, w, name)]
    if isinstance(wanted, dict):
        require(
            isinstance(value, dict) and set(value) == set(wanted),
            f"{name}: returns {_described(value)}, expected a dict with {', '.join(sorted(wanted))}",
            f"{name}：返回了 {_described(value)}，应为含 {', '.join(sorted(wanted))} 的字典",
        )
        return [leaf for key in sorted(wanted) for leaf in _same_structure(value[key], wanted[key], name)]
    return [value]


def _described(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"{len(value)} values"
    return "None" if value is None else f"a {type(value).__name__}"


def _labels(formula: Formula, name: str, wanted: Any) -> list[str]:
    """A name for each output, such as `masked_attention → weights`; a number where the outputs have no names."""
    if not isinstance(wanted, tuple | list | dict):
        return [name]
    names: Sequence[object] = getattr(formula, "returns", None) or _returns(name)
    if isinstance(wanted, dict):
        names = sorted(wanted)
    count = len(list(leaves(wanted)))
    if len(names) != count:
        names = range(count)
    return [f"{name} → {item}" for item in names]


def _returns(name: str) -> tuple[str, ...]:
    """The names of a part's outputs in the catalogue; empty if `name` is not a part."""
    for exercise in catalogue().values():
        for part in exercise.parts:
            if part.name == name:
                return part.returns
    return ()


def _parameter_name(formula: Formula, key: Key) -> str:
    if isinstance(key, str):
        return key
    return str(formula.__code__.co_varnames[key]) if hasattr(formula, "__code__") else str(key)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _exact(number: float, form: torch.Tensor) -> bool | int:
    return bool(number) if form.dtype == torch.bool else int(number)


def _told_apart(yours: float | bool | int, expected: float | bool | int) -> tuple[str, str]:
    """Both numbers with six digits, or with as many as it takes to see the difference."""
    if not isinstance(yours, float) or not isinstance(expected, float):
        return str(yours), str(expected)
    for digits in range(6, 18):
        shown = f"{yours:.{digits}g}", f"{expected:.{digits}g}"
        if shown[0] != shown[1]:
            break
    return shown


def _lost_digits(off: torch.Tensor, true: torch.Tensor) -> Text:
    """What to say if float64 numbers are right only to the precision of float32."""
    size = true[true.isfinite()].abs().max().item() if true.isfinite().any() else 0.0
    share = off.max().item() / size if size else math.inf
    if not FLOAT64_DIGITS_LOST[0] < share < FLOAT64_DIGITS_LOST[1]:
        return NOTHING
    right = round(-math.log10(share))
    return Text(
        f"\n  about {right} digits are right, float64 has 16: look for float32 in your code "
        "(`softmax(dtype=torch.float32)`, `.float()`, `torch.zeros` without a dtype) or for an added epsilon",
        f"\n  大约只有 {right} 位数字正确，而 float64 有 16 位：检查代码里有没有用到 float32"
        "（`softmax(dtype=torch.float32)`、`.float()`、没写 dtype 的 `torch.zeros`），或者多加了 epsilon",
    )
