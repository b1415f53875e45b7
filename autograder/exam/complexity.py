"""Judge how cost grows with length. Operations are counted; time is never measured."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from autograder.language import Text
from autograder.verdicts import require

from .proxy import Counts, Key, Student

SLACK = 0.25  # constant costs and odd sizes change the measured exponent a little
BEND = 1.05  # on a straight line the second difference may exceed the first by 5 %

COUNTED = {
    "largest": Text("the largest tensor", "最大的张量"),
    "live": Text("the memory held at once", "同时占用的内存"),
    "flops": Text("the number of operations", "运算次数"),
    "elements": Text("the number of elements touched", "读写的元素个数"),
    "left": Text("what is taken out of PyTorch", "搬出 PyTorch 的数据量"),
}

Inputs = Callable[[int], Sequence[Any]]  # by length
Cotangents = Sequence[torch.Tensor | None]


def growth(counts: dict[int, int]) -> float:
    """The exponent p of the best fit count ~ n**p."""
    xs = [math.log(n) for n in counts]
    ys = [math.log(max(count, 1)) for count in counts.values()]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x_mean) ** 2 for x in xs)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / spread


def is_straight(counts: list[int]) -> bool:
    """Whether the counts at three evenly spaced lengths lie on a line. A constant cost does not matter."""
    first, second, third = counts
    return third - second <= BEND * (second - first)


def grows_at_most(
    student: Student,
    name: str,
    inputs: Inputs,
    *,
    lengths: Iterable[int],
    power: float,
    what: str | Sequence[str],
    wrt: Sequence[Key] = (),
    cotangents: Callable[[int], Cotangents] | None = None,
    sooner: Sequence[int] | None = None,
) -> None:
    """The count `what` (one or several) of `name(*inputs(n))` grows no faster than n**power.

    With `wrt` and `cotangents(n)` the backward pass is counted too. `sooner` are three short lengths. If the counts lie on
    a line there, as for a loop, the long `lengths` are skipped. Only answers that work in chunks need the long ones.
    """
    kinds = (what,) if isinstance(what, str) else what

    def counted(lengths: Iterable[int]) -> dict[int, Counts]:
        weights = {n: None if cotangents is None else cotangents(n) for n in lengths}
        return {n: student.measure(name, *inputs(n), wrt=wrt, cotangents=weights[n]) for n in lengths}

    if sooner is not None:
        short = list(counted(sooner).values())
        if all(is_straight([count.get(kind, 0) for count in short]) for kind in kinds):
            return
    counts = counted(lengths)
    for kind in kinds:
        measured = growth({n: count.get(kind, 0) for n, count in counts.items()})
        en, zh = COUNTED[kind].en, COUNTED[kind].zh
        if cotangents is not None:
            en, zh = f"with the backward pass, {en}", f"连同反向传播，{zh}"
        require(
            measured <= power + SLACK,
            f"{name}: {en} grows as n^{measured:.1f}; n^{power:.1f} is required",
            f"{name}：{zh}按 n^{measured:.1f} 增长，要求 n^{power:.1f}",
        )


def fits_in(
    student: Student,
    name: str,
    *inputs: Any,
    megabytes: int,
    wrt: Sequence[Key] = (),
    cotangents: Cotangents | None = None,
    tensors: bool = True,
) -> None:
    """One call on large inputs takes no more memory than this. With `wrt` and `cotangents`, the backward pass counts too.

    Tensors, Python objects and NumPy arrays are counted inside the process, and where possible the whole process from
    outside. With `tensors=False`, tensors are not counted, because another promise counts them already.
    """
    traced = student.measure(name, *inputs, wrt=wrt, cotangents=cotangents, trace=True)
    live = student.measure(name, *inputs, wrt=wrt, cotangents=cotangents).get("live", 0) if tensors else 0
    used = max(traced.get("outside", 0), live + traced.get("python", 0)) / 2**20
    require(
        used <= megabytes,
        f"{name}: takes {used:.0f} MB for inputs of {_megabytes(inputs):.1f} MB; {megabytes} are enough",
        f"{name}：输入只有 {_megabytes(inputs):.1f} MB，却用了 {used:.0f} MB；{megabytes} MB 就够了",
    )


def _megabytes(inputs: Sequence[Any]) -> float:
    return sum(x.numel() * x.element_size() for x in inputs if isinstance(x, torch.Tensor)) / 2**20
