"""How far off an answer may be: measured on the inputs at hand, never guessed.

The truth is the reference formula in float64. Three things are measured on the inputs at hand: what the same formula gets
wrong in the student's own dtype; how far its result moves when each input is rounded once; and the largest number met on
the way, whose rounding any other right formula may inherit (exp(x - logsumexp(x)) does), √n times over where n terms are
summed in another order. A small multiple of these is allowed. So a right answer may reorder its sums, and an epsilon where
none belongs is still seen.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode

MULTIPLE = 16  # of the measured errors
ULPS = 4  # of the result, at the size of the largest number met on the way
ROUNDINGS = 2  # how often the inputs are rounded at random
REMEMBERED = 16384  # expectations kept: a class is asked the same questions again and again


@dataclass(frozen=True)
class Expectation:
    """What a formula gives: in the student's dtype, in float64, and how far off each output may be."""

    wanted: object
    truth: list
    allowed: list[float]


_remembered: OrderedDict[tuple, tuple[object, Expectation]] = OrderedDict()


def expectation(formula, args, kwargs) -> Expectation:
    key = (getattr(formula, "key", lambda: id(formula))(), key_of((args, kwargs)))
    if key in _remembered:
        _remembered.move_to_end(key)
        return _remembered[key][1]
    expected = _measured(formula, args, kwargs)
    _remembered[key] = formula, expected  # the formula is kept too, so that its id stays its own
    if len(_remembered) > REMEMBERED:
        _remembered.popitem(last=False)
    return expected


def _measured(formula, args, kwargs) -> Expectation:
    dtype = _dtype((args, kwargs))
    with _LargestNumber(flat((args, kwargs))) as seen:
        exact = formula(*_double(args), **_double(kwargs))
    truth = flat(exact)
    wanted = exact if dtype is torch.float64 else formula(*args, **kwargs)
    errors = _distances(flat(wanted), truth)
    if dtype is None:
        return Expectation(wanted, truth, [MULTIPLE * error for error in errors])
    unit = torch.finfo(dtype).eps
    generator = torch.Generator().manual_seed(0)
    for _ in range(ROUNDINGS):
        rounded = flat(formula(*_rounded(args, unit, generator), **_rounded(kwargs, unit, generator)))
        errors = [max(pair) for pair in zip(errors, _distances(rounded, truth), strict=True)]
    inherited = ULPS * unit * max(seen.largest, 1.0) * math.sqrt(_longest((args, kwargs)))
    allowed = [MULTIPLE * error + inherited * _largest(true) for error, true in zip(errors, truth, strict=True)]
    return Expectation(wanted, truth, allowed)


class _LargestNumber(TorchDispatchMode):
    """The largest finite number among inputs and intermediate results."""

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # nothing is compiled here, and keeping the compiler out would first import it

    def __init__(self, inputs):
        super().__init__()
        self.largest = max(map(_largest, inputs), default=0.0)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if function.is_view or "empty" in function.__name__:
            return out  # nothing new, or whatever the memory held before: dropout begins so
        for tensor in (out,) if isinstance(out, torch.Tensor) else flat(out):
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and not tensor.is_meta:
                self.largest = max(self.largest, _largest(tensor))
        return out


def key_of(value):
    """Equal for equal content."""
    if isinstance(value, torch.Tensor):
        plain = value.detach().contiguous()
        return (plain.dtype, plain.shape, plain.flatten().view(torch.uint8).numpy().tobytes() if plain.numel() else b"")
    if isinstance(value, list | tuple):
        return (type(value), *map(key_of, value))
    if isinstance(value, dict):
        return tuple((name, key_of(item)) for name, item in value.items())
    return (type(value), value)


def _distances(answers: list, truth: list) -> list[float]:
    return [_distance(answer, true) for answer, true in zip(answers, truth, strict=True)]


def _distance(a, b) -> float:
    if not isinstance(a, torch.Tensor) or not a.is_floating_point() or not a.numel():
        return 0.0
    off = (a.double() - b.double()).abs()
    off = off[off.isfinite()]
    return float(off.max()) if off.numel() else 0.0


def _largest(tensor) -> float:
    if not isinstance(tensor, torch.Tensor) or not tensor.numel():
        return 0.0
    sizes = tensor.detach().abs() if tensor.is_floating_point() else tensor.double().abs()
    largest = sizes.max().item()
    return largest if math.isfinite(largest) else sizes.masked_fill(~sizes.isfinite(), 0.0).max().item()


def _longest(value) -> int:
    """The longest axis of the inputs, over which somebody may sum one by one."""
    return max((size for x in flat(value) if isinstance(x, torch.Tensor) for size in x.shape), default=1) or 1


def _dtype(value) -> torch.dtype | None:
    """The floating dtype of the inputs, if there is one."""
    found = [x.dtype for x in flat(value) if isinstance(x, torch.Tensor) and x.is_floating_point()]
    return max(found, key=lambda dtype: torch.finfo(dtype).eps) if found else None


def _double(value):
    return _mapped(value, lambda x: x.double() if x.is_floating_point() else x)


def _rounded(value, unit, generator):
    def one(x):
        if not x.is_floating_point():
            return x
        signs = torch.randint(-1, 2, x.shape, generator=generator, dtype=torch.float64)
        return x.double() * (1 + unit * signs)

    return _mapped(value, one)


def _mapped(value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return value


def flat(value) -> list:
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flat(item)]
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flat(value[key])]
    return [value]
