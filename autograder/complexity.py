"""Judge how cost grows with length by counting, never by the clock."""

import math

from .proxy import Student
from .verdicts import require

SLACK = 0.25  # constants and odd sizes bend a straight line a little

COUNTED = {
    "largest": ("the largest tensor", "最大的张量"),
    "flops": ("the number of operations", "运算次数"),
    "elements": ("the number of elements touched", "读写的元素个数"),
}


def growth(counts: dict[int, int]) -> float:
    """The exponent p of the best fit count ~ n**p."""
    xs = [math.log(n) for n in counts]
    ys = [math.log(max(count, 1)) for count in counts.values()]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x_mean) ** 2 for x in xs)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / spread


def grows_at_most(student: Student, name: str, inputs, *, lengths, power: float, what: str) -> None:
    """The count `what` of `name(*inputs(n))` grows no faster than n**power."""
    measured = growth({n: student.measure(name, *inputs(n)).get(what, 0) for n in lengths})
    en, zh = COUNTED[what]
    require(
        measured <= power + SLACK,
        f"{name}: {en} grows as n^{measured:.1f}; n^{power:.1f} is required",
        f"{name}：{zh}按 n^{measured:.1f} 增长，要求 n^{power:.1f}",
    )


def fits_in(student: Student, name: str, *inputs, megabytes: int) -> None:
    """One call on large inputs takes no more memory than this, counted inside and, where possible, from outside."""
    counts = student.measure(name, *inputs)
    used = max(counts.get("outside", 0), counts.get("largest", 0) * inputs[0].element_size()) / 2**20
    require(
        used <= megabytes,
        f"{name}: takes {used:.0f} MB for inputs of {_megabytes(inputs):.1f} MB; {megabytes} are enough",
        f"{name}：输入只有 {_megabytes(inputs):.1f} MB，却用了 {used:.0f} MB；{megabytes} MB 就够了",
    )


def _megabytes(inputs) -> float:
    return sum(tensor.numel() * tensor.element_size() for tensor in inputs) / 2**20
