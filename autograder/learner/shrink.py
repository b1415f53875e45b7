"""Find a smaller input on which an answer is still wrong in the same way.

The axes of test inputs have different sizes, so two axes of equal size mean the same thing. Each size in turn is cut to
its first few entries, in all tensors at once. The cut is kept if the answer is still about as wrong.
"""

from typing import Any

import torch

from autograder.catalogue import Part
from autograder.exam.comparison import Derivative, agree
from autograder.exam.evidence import Evidence
from autograder.exam.proxy import Student
from autograder.student.nested import mapped, tensors
from autograder.verdicts import Broken

OUTER, INNER = (1, 2), (2, 3)  # sizes tried for batches and heads, and for rows and columns
STILL_WRONG = 0.01  # share of the first error; a smaller error may be another fault, or rounding


def smallest(student: Student, part: Part, seen: Evidence) -> Evidence:
    """The evidence on the smallest input found; `seen` itself if it cannot be made smaller."""
    if seen.formula is None or seen.yours is None or isinstance(seen.formula, Derivative):
        return seen
    if part.kind != "function" or seen.formula.__name__ != part.name:
        return seen
    inner = _inner_sizes(seen)
    outer = {size for tensor in tensors(seen.args) for size in tensor.shape} - inner
    for size, tried in [*((size, OUTER) for size in sorted(outer)), *((size, INNER) for size in sorted(inner))]:
        for smaller in tried:
            again = smaller < size and _wrong_on(student, _cut(seen.args, size, smaller), seen)
            if again:
                seen = again
                break
    return seen


def _wrong_on(student: Student, args: tuple[Any, ...], before: Evidence) -> Evidence | None:
    """The evidence with these arguments, if the answer is wrong in the same way."""
    assert before.formula is not None
    try:
        agree(getattr(student, before.formula.__name__)(*args, **before.kwargs), before.formula, *args, **before.kwargs)
    except Broken as broken:
        seen = broken.evidence
        if seen and seen.yours is not None and _finite(seen) == _finite(before):
            return seen if not _finite(seen) or seen.off >= STILL_WRONG * before.off else None
    except Exception:
        return None  # the reference itself fails on these arguments
    return None


def _finite(seen: Evidence) -> bool:
    return seen.off < float("inf")


def _inner_sizes(seen: Evidence) -> set[int]:
    return {size for tensor in tensors(seen.args) for size in tensor.shape[-2:]} | _numbers(seen)


def _numbers(seen: Evidence) -> set[int]:
    """Whole numbers that may be made smaller. Not if there are tensors, which may contain such lengths or positions."""
    alone = not tensors(seen.args)
    return {value for value in seen.args if alone and type(value) is int}


def _cut(args: tuple[Any, ...], size: int, smaller: int) -> Any:
    def cut(leaf: Any) -> Any:
        if type(leaf) is int:
            return smaller if leaf == size else leaf
        if not isinstance(leaf, torch.Tensor):
            return leaf
        for axis, length in enumerate(leaf.shape):
            if length == size:
                leaf = leaf.narrow(axis, 0, smaller)
        return leaf.contiguous()

    return mapped(args, cut)
