"""How far off an answer may be: measured on the inputs of the test, never guessed.

The truth is the reference formula in float64. Three things are measured on the inputs:
- the error of the same formula in the student's dtype;
- how far the result moves when each input is rounded once;
- the largest intermediate number. Another right formula, such as exp(x - logsumexp(x)), may inherit the rounding error
  of that number, and √n times as much where it adds n terms in another order.

A small multiple of these is allowed. So a right answer may reorder its sums, and a wrong epsilon is still found.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from autograder.student.nested import frozen, leaves, mapped_tensors, tensors

MULTIPLE = 16  # of the measured errors
ULPS = 4  # units of rounding of the result, scaled by the largest intermediate number
ROUNDINGS = 2  # how often the inputs are rounded at random
REMEMBERED = 16384  # expectations kept, because a whole class gets the same questions


@dataclass(frozen=True)
class Expectation:
    """The result of a formula in the student's dtype and in float64, and how far off each output may be."""

    wanted: Any
    truth: list[Any]
    allowed: list[float]


_remembered: OrderedDict[Any, tuple[object, Expectation]] = OrderedDict()


def expectation(formula: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Expectation:
    key = (getattr(formula, "key", lambda: id(formula))(), key_of((args, kwargs)))
    if key in _remembered:
        _remembered.move_to_end(key)
        return _remembered[key][1]
    expected = _measured(formula, args, kwargs)
    _remembered[key] = formula, expected  # a reference to the formula, so that no other object gets its id
    if len(_remembered) > REMEMBERED:
        _remembered.popitem(last=False)
    return expected


def _measured(formula: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Expectation:
    dtype = _dtype((args, kwargs))
    with _LargestNumber(leaves((args, kwargs))) as seen:
        exact = formula(*_double(args), **_double(kwargs))
    truth = list(leaves(exact))
    wanted = exact if dtype is torch.float64 else formula(*args, **kwargs)
    errors = _distances(leaves(wanted), truth)
    if dtype is None:
        return Expectation(wanted, truth, [MULTIPLE * error for error in errors])
    unit = torch.finfo(dtype).eps
    generator = torch.Generator().manual_seed(0)
    for _ in range(ROUNDINGS):
        rounded = leaves(formula(*_rounded(args, unit, generator), **_rounded(kwargs, unit, generator)))
        errors = [max(pair) for pair in zip(errors, _distances(rounded, truth), strict=True)]
    inherited = ULPS * unit * max(seen.largest, 1.0) * math.sqrt(_longest((args, kwargs)))
    allowed = [MULTIPLE * error + inherited * _largest(true) for error, true in zip(errors, truth, strict=True)]
    return Expectation(wanted, truth, allowed)


class _LargestNumber(TorchDispatchMode):
    """The largest finite number among inputs and intermediate results."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would import the compiler, and nothing is compiled here

    def __init__(self, inputs: Iterable[Any]):
        super().__init__()
        self.largest = max(map(_largest, inputs), default=0.0)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        if function.is_view or "empty" in function.__name__:
            return out  # a view has no new numbers; an empty tensor (dropout makes one) has meaningless ones
        for tensor in tensors(out):
            if tensor.is_floating_point() and not tensor.is_meta:
                self.largest = max(self.largest, _largest(tensor))
        return out


def key_of(value: Any) -> Any:
    """A hashable key; equal for equal content."""
    return frozen(value, _content)


def _content(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return (type(leaf), leaf)
    plain = leaf.detach().contiguous()
    return (plain.dtype, plain.shape, plain.flatten().view(torch.uint8).numpy().tobytes() if plain.numel() else b"")


def _distances(answers: Iterable[Any], truth: list[Any]) -> list[float]:
    return [_distance(answer, true) for answer, true in zip(answers, truth, strict=True)]


def _distance(a: Any, b: Any) -> float:
    if not isinstance(a, torch.Tensor) or not a.is_floating_point() or not a.numel():
        return 0.0
    off = (a.double() - b.double()).abs()
    off = off[off.isfinite()]
    return float(off.max()) if off.numel() else 0.0


def _largest(tensor: Any) -> float:
    if not isinstance(tensor, torch.Tensor) or not tensor.numel():
        return 0.0
    sizes = tensor.detach().abs() if tensor.is_floating_point() else tensor.double().abs()
    largest = sizes.max().item()
    return largest if math.isfinite(largest) else sizes.masked_fill(~sizes.isfinite(), 0.0).max().item()


def _longest(value: Any) -> int:
    """The longest axis of the inputs. An answer may sum over it one by one."""
    return max((size for tensor in tensors(value) for size in tensor.shape), default=1) or 1


def _dtype(value: Any) -> torch.dtype | None:
    """The floating dtype of the inputs, if there is one."""
    found = [tensor.dtype for tensor in tensors(value) if tensor.is_floating_point()]
    return max(found, key=lambda dtype: torch.finfo(dtype).eps) if found else None


def _double(value: Any) -> Any:
    return mapped_tensors(value, lambda x: x.double() if x.is_floating_point() else x)


def _rounded(value: Any, unit: float, generator: torch.Generator) -> Any:
    def one(x: torch.Tensor) -> torch.Tensor:
        if not x.is_floating_point():
            return x
        signs = torch.randint(-1, 2, x.shape, generator=generator, dtype=torch.float64)
        return x.double() * (1 + unit * signs)

    return mapped_tensors(value, one)
