"""Carry out the examiner's requests on a student's namespace.

This code runs in two places: in the student's process behind the wire, and in a learner's own notebook.
A request is a dict with "do"; the answer is a dict with "value", or with "error" when the student's code raised.
"""

import inspect
import linecache
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from .autograd import starts
from .measure import Measurement, Tracing, Watch
from .nested import mapped, tensors
from .trap import Trap
from .wire import Answer, Handle, Request, Seeded, WireError, encode

LONGEST_TEXT = 500
TRACEBACK_LINES = 4
# Saved before student code runs. If student code replaces these functions, nothing changes here.
_clone, _detach, _nan_to_num = torch.Tensor.clone, torch.Tensor.detach, torch.Tensor.nan_to_num
_equal, _rng_state = torch.equal, torch.get_rng_state
OUT_OF_MEMORY = ("can't allocate memory", "out of memory", "cannot allocate memory")


class Performer:
    """Answers requests about one namespace. `trap` makes forbidden operators raise; it exists for the CPU only."""

    def __init__(self, namespace: dict[str, Any], device: str = "cpu", trap: Trap | None = None):
        self.namespace = namespace
        self.device = device
        self.trap = trap
        self.modules: list[nn.Module] = []

    def perform(self, request: Request) -> Answer:
        if self.trap:
            self.trap.sprung.clear()
        try:
            answer: Answer = getattr(self, f"do_{request['do']}")(**{k: v for k, v in request.items() if k != "do"})
        except BaseException as raised:
            answer = {"error": self.describe(raised)}
            if self.trap and self.trap.sprung:
                answer["counts"] = {"operators": sorted(self.trap.sprung)}
        return answer

    def describe(self, raised: BaseException) -> dict[str, Any]:
        """Describe an error of the student's code as plain data."""
        return describe(raised, self.namespace)

    def reply(self, request: Request) -> bytes:
        """The answer as a frame; an answer that may not cross the wire becomes an error."""
        try:
            return encode(self.perform(request))
        except WireError as refused:
            text = f"returned something that cannot be graded: {refused}"
            return encode({"error": {"kind": "TypeError", "kinds": ["TypeError"], "text": text, "lines": []}})
        except BaseException as raised:
            return encode({"error": describe(raised, self.namespace)})

    def do_defined(self, names: Iterable[str]) -> Answer:
        """Which of these names exist, and what they are."""
        return {"value": {name: _kind(self.namespace.get(name)) for name in names}}

    def do_call(
        self,
        target: str | Handle,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        wrt: Sequence[int | str] = (),
        cotangents: Sequence[torch.Tensor | None] | None = None,
        parameters: bool = False,
        count: bool = False,
        trace: bool = False,
        forbidden: Sequence[str] = (),
    ) -> Answer:
        """Call a function or a module; with `cotangents` differentiate it too.

        `count` counts what it does, `trace` measures the memory of Python objects. Operators in `forbidden` raise, or
        are at least reported.
        """
        function = self._find(target)
        args, kwargs = self._fresh(list(args)), self._fresh(dict(kwargs or {}))
        inputs = [args[key] if isinstance(key, int) else kwargs[key] for key in wrt]
        for tensor in inputs:
            tensor.requires_grad_(True)
        given = tensors((args, kwargs))
        before = [_clone(_detach(tensor)) for tensor in given]
        cotangents = self._fresh(cotangents)
        rng_before = _rng_state()
        watch: Measurement | Tracing | Watch | None = None
        if count:
            watch = Measurement(given)
        elif trace:
            watch = Tracing()
        elif forbidden:
            watch = Watch(trapped=self.trap is not None)
        with self.trap.waiting_for(forbidden) if self.trap else nullcontext(), watch or nullcontext():
            value = function(*args, **kwargs)
            answer: Answer = {"value": value}
            if cotangents is not None:
                named = parameters_of(function) if parameters else {}
                found = _vjp(value, [*inputs, *named.values()], cotangents)
                answer["gradients"] = found[: len(inputs)]
                answer["parameter_gradients"] = dict(zip(named, found[len(inputs) :], strict=True))
        if watch is not None:
            answer["counts"] = watch.counts()
            answer["counts"]["operators"] += sorted(self.trap.sprung) if self.trap else []
        answer["stirred"] = not _equal(rng_before, _rng_state())
        answer["changed"] = [not _same(old, new) for old, new in zip(before, given, strict=True)]
        if list(map(id, tensors((args, kwargs)))) != list(map(id, given)):
            answer["changed"].append(True)  # a list or a dict holds other tensors than before
        if isinstance(value, nn.Module):
            self.modules.append(value)
            answer["value"] = Handle(len(self.modules) - 1)
        return answer

    def do_parameters(self, target: Handle) -> Answer:
        return {"value": {name: weight.detach() for name, weight in parameters_of(self._find(target)).items()}}

    def do_load(self, target: Handle, state: dict[str, torch.Tensor]) -> Answer:
        """Set parameters by name. Every name must exist with that shape; others keep their value."""
        weights = parameters_of(self._find(target))
        with torch.no_grad():
            for name, tensor in state.items():
                if name not in weights:
                    raise AttributeError(f"the module has no parameter {name!r}; it has {', '.join(weights) or 'none'}")
                if weights[name].shape != tensor.shape:
                    raise ValueError(
                        f"parameter {name!r} has shape {tuple(weights[name].shape)}, wanted {tuple(tensor.shape)}"
                    )
                weights[name].copy_(tensor)
        return {"value": None}

    def do_mode(self, target: Handle, training: bool, dtype: torch.dtype | None = None) -> Answer:
        self._find(target).train(training)
        if dtype is not None:
            self._find(target).to(dtype)
        return {"value": None}

    def _find(self, target: str | Handle) -> Any:
        if isinstance(target, Handle):
            return self.modules[target.number]
        if self.namespace.get(target) is None:
            raise NameError(f"name {target!r} is not defined")
        return self.namespace[target]

    def _fresh(self, value: Any) -> Any:
        """A copy that the student may change."""

        def copied(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                return leaf.detach().to(self.device, copy=True)
            return leaf.generator(self.device) if isinstance(leaf, Seeded) else leaf

        return mapped(value, copied)


def parameters_of(module: nn.Module) -> dict[str, nn.Parameter]:
    """All parameters by name. A layer that is registered twice, as `W_q` and in a ModuleList, has both names."""
    return dict(module.named_parameters(remove_duplicate=False))


def describe(raised: BaseException, namespace: dict[str, Any]) -> dict[str, Any]:
    """What was raised, and the lines of the student's own code that led to it."""
    kind = type(raised).__name__
    try:
        text = str(raised)[:LONGEST_TEXT]
    except Exception:
        text = ""
    if isinstance(raised, MemoryError) or any(sign in text.lower() for sign in OUT_OF_MEMORY):
        kind = "MemoryError"
    lines, trace, module = [], raised.__traceback__, ""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if trace.tb_frame.f_globals is namespace:
            code = trace.tb_frame.f_code
            source = linecache.getline(code.co_filename, trace.tb_lineno).strip()
            lines.append([code.co_name, trace.tb_lineno, source[:LONGEST_TEXT]])
        trace = trace.tb_next
    kinds = [base.__name__ for base in type(raised).__mro__]
    return {"kind": kind, "kinds": kinds, "text": text, "lines": lines[-TRACEBACK_LINES:], "raised_in": module}


def _kind(value: object) -> str | None:
    if value is None:
        return None
    return "class" if inspect.isclass(value) else "function" if callable(value) else "value"


def _vjp(
    value: Any, inputs: list[torch.Tensor], cotangents: Sequence[torch.Tensor | None]
) -> list[torch.Tensor | None]:
    """Gradients of the outputs weighted by `cotangents`; None where no gradient flows or the shape is wrong."""
    pairs = [
        (output, weight.to(output.dtype))
        for output, weight in zip(value if isinstance(value, tuple | list) else (value,), cotangents, strict=False)
        if weight is not None and isinstance(output, torch.Tensor)
        if output.requires_grad and output.shape == weight.shape
    ]
    if not pairs:
        return [None] * len(inputs)
    return list(torch.autograd.grad(list(starts(pairs)), inputs, allow_unused=True))


def _same(old: torch.Tensor, new: torch.Tensor) -> bool:
    if old.shape != new.shape:
        return False
    return _equal(old, new) or _equal(_nan_to_num(old, nan=0.5), _nan_to_num(_detach(new), nan=0.5))
