"""Find a smaller input on which an answer is still wrong in the same way.

The sizes of a probe are pairwise distinct, so axes of equal size are one and the same axis. Each size in turn is cut to
its first few entries, in all tensors at once, and the cut stays if the answer is still about as wrong.
"""

from .comparison import Derivative, agree
from .evidence import Evidence
from .proxy import Student
from .student.perform import tensors_in
from .verdicts import Broken

OUTER, INNER = (1, 2), (2, 3)  # what is tried for batches and heads, and for rows and columns
STILL_WRONG = 0.01  # of how far off it was: anything less may be another fault, or rounding


def smallest(student: Student, part, seen: Evidence) -> Evidence:
    """The evidence on the smallest input found, or as it is when it cannot be made smaller."""
    callable_by_name = part.kind == "function" and seen.formula.__name__ == part.name
    if not callable_by_name or isinstance(seen.formula, Derivative) or seen.yours is None:
        return seen
    inner = _inner_sizes(seen)
    outer = {size for tensor in tensors_in(seen.args) for size in tensor.shape} - inner
    for size, tried in [*((size, OUTER) for size in sorted(outer)), *((size, INNER) for size in sorted(inner))]:
        for smaller in tried:
            again = smaller < size and _wrong_on(student, _cut(seen.args, size, smaller), seen)
            if again:
                seen = again
                break
    return seen


def _wrong_on(student: Student, args: tuple, before: Evidence) -> Evidence | None:
    """What is seen with these arguments, if it is the same kind of wrong."""
    try:
        agree(getattr(student, before.formula.__name__)(*args, **before.kwargs), before.formula, *args, **before.kwargs)
    except Broken as broken:
        seen = broken.evidence
        if seen and seen.yours is not None and _finite(seen) == _finite(before):
            return seen if not _finite(seen) or seen.off >= STILL_WRONG * before.off else None
    except Exception:
        return None  # the reference itself has no answer to such arguments
    return None


def _finite(seen: Evidence) -> bool:
    return seen.off < float("inf")


def _inner_sizes(seen: Evidence) -> set[int]:
    return {size for tensor in tensors_in(seen.args) for size in tensor.shape[-2:]} | _numbers(seen)


def _numbers(seen: Evidence) -> set[int]:
    """Whole numbers that may be cut: none beside a tensor, whose entries may speak of them as lengths or positions."""
    alone = not any(True for _ in tensors_in(seen.args))
    return {value for value in seen.args if alone and type(value) is int}


def _cut(args: tuple, size: int, smaller: int) -> tuple:
    return tuple(_cut_one(value, size, smaller) for value in args)


def _cut_one(value, size: int, smaller: int):
    if type(value) is int:
        return smaller if value == size else value
    if isinstance(value, list | tuple):
        return type(value)(_cut_one(item, size, smaller) for item in value)
    if hasattr(value, "shape"):
        for axis, length in enumerate(value.shape):
            if length == size:
                value = value.narrow(axis, 0, smaller)
        return value.contiguous()
    return value
