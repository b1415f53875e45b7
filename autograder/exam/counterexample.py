"""Judge inputs that should break a given piece of code.

The student's answer is plain data. It must have the form that the task asks for, and every size is limited.
We run the broken code and the reference on it in this process, so the student cannot fake their results. The inputs are
right when the reference has a result and the given code has a different one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any

import torch

from autograder.language import Text
from autograder.verdicts import Broken, require, wrong

from .comparison import agree
from .proxy import Student

Function = Callable[..., Any]

LONGEST_AXIS = 16
LARGEST_NUMBER = 100
KINDS = {
    "float": (torch.float32, torch.float64),
    "bool": (torch.bool,),
    "int": (torch.int32, torch.int64),
}


@dataclass(frozen=True)
class Array:
    """A tensor with one of these numbers of axes. Floats are finite and not all the same, and become float64."""

    kind: str
    axes: tuple[int, ...]
    only: tuple[float, ...] = ()  # the only values it may hold

    def fault(self, value: Any) -> Text | None:
        if not isinstance(value, torch.Tensor) or value.dtype not in KINDS[self.kind]:
            return Text(f"must be a {self.kind} tensor", f"应为 {self.kind} 张量")
        if value.dim() not in self.axes:
            axes = " or ".join(map(str, self.axes))
            return Text(
                f"has {value.dim()} axes, not {axes}", f"有 {value.dim()} 个轴，应为 {axes.replace(' or ', ' 或 ')}"
            )
        if not all(1 <= size <= LONGEST_AXIS for size in value.shape):
            return Text(f"every axis has 1 to {LONGEST_AXIS} entries", f"每个轴的长度应在 1 到 {LONGEST_AXIS} 之间")
        numbers = value.double()
        if not bool((numbers.abs() <= LARGEST_NUMBER).all()):
            return Text(f"every number lies within ±{LARGEST_NUMBER}", f"每个数都应在 ±{LARGEST_NUMBER} 以内")
        if self.kind == "int" and bool((numbers < 0).any()):
            return Text("no number is negative", "不能有负数")
        if self.only and not bool(torch.isin(numbers, numbers.new_tensor(self.only)).all()):
            return Text(f"holds only {self.only}", f"只能含有 {self.only}")
        if (
            self.kind == "float"
            and not self.only
            and value.numel() > 1
            and bool((numbers == numbers.flatten()[0]).all())
        ):
            return Text("has the same number everywhere, which proves nothing", "处处是同一个数，什么也证明不了")
        return None


@dataclass(frozen=True)
class Number:
    """A Python number of exactly this type, both ends included."""

    kind: type
    low: float = 0
    high: float = 1

    def fault(self, value: Any) -> Text | None:
        whole_for_float = self.kind is float and type(value) is int
        if type(value) is not self.kind and not whole_for_float:
            return Text(f"must be a Python {self.kind.__name__}", f"应为 Python 的 {self.kind.__name__}")
        if not self.low <= value <= self.high:
            return Text(f"lies between {self.low} and {self.high}", f"应在 {self.low} 到 {self.high} 之间")
        return None


def breaks(
    student: Student,
    given: Function,
    right: Function,
    *,
    silently: bool = False,
    refusal: bool = False,
    unless: Function | None = None,
    **form: Array | Number,
) -> None:
    """The student's inputs make `given` go wrong.

    `silently`: an error does not count as going wrong. `refusal`: where `right` raises ValueError, so must `given`.
    `unless(**inputs)` returns a text in both languages if the inputs are valid but useless.
    """
    name = "break" + right.__name__.removeprefix("repair")
    inputs = fit(name, getattr(student, name)(), form)
    found = judge(given, right, inputs, silently, refusal, unless)
    if isinstance(found, Text):
        raise wrong(f"{name}: {found.en}", f"{name}：{found.zh}")
    student.replace_transcript([found])  # a diagnosis compares outcomes, not numbers
    require(
        found != "right",
        f"{name}: on these inputs the given code is right",
        f"{name}：在这组输入上，给出的代码是对的",
    )
    require(
        found != "crashes",
        f"{name}: on these inputs the given code raises an error, which everybody sees; let it be wrong without an error",
        f"{name}：在这组输入上，给出的代码会报错，谁都看得见；请让它错得悄无声息",
    )


def fit(name: str, value: Any, form: dict[str, Any]) -> dict[str, Any]:
    """The inputs by name, floats as float64. Raises `Broken` when they are not what the task asks for."""
    if isinstance(value, tuple | list) and len(value) == len(form):
        value = dict(zip(form, value, strict=True))
    wanted = ", ".join(form)
    require(
        isinstance(value, dict) and set(value) == set(form),
        f"{name}: return a dict or a tuple of the inputs {wanted}",
        f"{name}：请返回由输入 {wanted} 组成的字典或元组",
    )
    for key, kind in form.items():
        if fault := kind.fault(value[key]):
            raise wrong(f"{name} → {key}: {fault.en}", f"{name} → {key}：{fault.zh}")
    return {key: _as_double(value[key]) for key in form}


def judge(
    given: Function,
    right: Function,
    inputs: dict[str, Any],
    silently: bool = False,
    refusal: bool = False,
    unless: Function | None = None,
) -> str | Text:
    """What the given code is on these inputs: "wrong", "right" or "crashes". A text says why the inputs are useless."""
    given, right = seeded(given), seeded(right)
    refused = False
    try:
        right(**inputs)
    except Exception as raised:
        refused = refusal and isinstance(raised, ValueError)
        if not refused:
            return Text(f"these inputs do not fit together: {raised}", f"这些输入彼此不相配：{raised}")
    if unless and (why := unless(**inputs)):
        return Text(*why)
    try:
        value = given(**inputs)
    except Exception:
        return "crashes" if silently else "wrong"
    if refused:
        return "wrong"
    try:
        agree(value, right, **inputs)
    except Broken:
        return "wrong"
    return "right"


@cache
def seeded(function: Function) -> Function:
    """The same function, but seeded at every call, so that two versions of dropout can be compared."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(18)
            return function(*args, **kwargs)

    return call


def _as_double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
