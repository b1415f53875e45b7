"""Count what a call does instead of timing it: the forward pass and, if it is differentiated, the backward pass.

flops, elements   the work: multiplications and additions of matrix products; numbers read and written
largest           elements of the largest tensor made
live              bytes of all tensors made and alive at once, at the peak: many small tiles count together
reduced           the most numbers that one reduction (a sum, a maximum, a softmax, a matrix product) made into one;
                  a row that leaves PyTorch counts as a reduction too, because nothing counts what happens there
left              elements that left PyTorch by `.numpy()`, `.tolist()` and similar methods
python            bytes of Python and NumPy objects alive at once, at the peak (traced in a separate call)

Two watchers are needed. The dispatch watcher sees every kernel, including the fused attention for which PyTorch's own
counter reports 0 FLOPs. The function watcher sees composite functions such as `multi_head_attention_forward`,
which are decomposed before they reach a kernel.
Does not see: work done in NumPy or plain Python, nor memory taken directly from the system. For that, the examiner
measures the memory of the process from outside.
"""

import tracemalloc
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils.flop_counter import flop_registry

from .nested import SEQUENCES, tensors

aten = torch.ops.aten


def _fused_attention_flops(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *rest: Any, **named: Any
) -> int:
    *batch, queries, width = query.shape
    pairs = queries * key.shape[-2]
    for size in batch:
        pairs *= size
    return 2 * pairs * (width + value.shape[-1])


READ_WHAT_THEY_RETURN = {"gather", "index", "index_select", "take", "embedding"}  # not the whole input
WAYS_OUT = {"numpy", "tolist", "__array__", "item", "__dlpack__"}
SHRINK = frozenset(
    "sum nansum mean nanmean amax amin max min aminmax argmax argmin prod logsumexp linalg_vector_norm var std median "
    "nanmedian".split()
)
RUN_ALONG = frozenset(
    "_softmax _log_softmax _safe_softmax cumsum cumprod cummax cummin logcumsumexp _logcumsumexp _cummax_helper "
    "_cummin_helper sort".split()
)
# Matrix products, with the position of their left factor.
CONTRACT = {"mm": 0, "bmm": 0, "mv": 0, "dot": 0, "vdot": 0, "addmm": 1, "baddbmm": 1, "addmv": 1}
EXTRA_FLOPS = {aten._scaled_dot_product_flash_attention_for_cpu: _fused_attention_flops}


class _Kernels(TorchDispatchMode):
    facts: ClassVar[dict[int, "_Facts"]] = {}  # a cache by the id of the kernel

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would import the compiler, and nothing is compiled here

    def __init__(self, given: set[int]):
        super().__init__()
        self.given = given
        self.operators: set[str] = set()
        self.flops = 0
        self.elements = 0
        self.largest = 0
        self.reduced = 0
        self.live = self.most_live = 0
        self.alive: dict[int, tuple[weakref.ref[Any], int]] = {}  # by the id of a storage: a reference to it, its bytes

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        facts = self.facts.get(id(function)) or self.facts.setdefault(id(function), _Facts(function))
        self.operators.add(facts.name)
        if facts.composite:
            with self:
                return function.decompose(*args, **kwargs)
        out = function(*args, **kwargs)
        if facts.flops is not None:
            self.flops += facts.flops(*args, **kwargs, out_val=out)
        if facts.reduces:
            self.reduced = max(self.reduced, _reduced(facts.name, args, kwargs, out))
        made = tensors(out)
        if not facts.view:
            self.elements += _elements(made) + _elements(args[1:] if facts.gathers else args)
        for tensor in made:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in self.given:
                self._follow(storage, tensor.element_size())
        return out

    def _follow(self, storage: Any, element: int) -> None:
        """Count the storage as live until it is freed."""
        key, size = id(storage), storage.nbytes()
        reference, known = self.alive.get(key, (None, 0))
        if reference is None or reference() is not storage:
            reference = weakref.ref(storage, lambda dead: self._freed(key, dead))
        elif size == known:
            return
        self.alive[key] = reference, size
        self.live += size - known
        if size // element > self.largest:
            self.largest = size // element
        if self.live > self.most_live:
            self.most_live = self.live

    def _freed(self, key: int, dead: weakref.ref[Any]) -> None:
        if self.alive.get(key, (None, 0))[0] is dead:
            self.live -= self.alive.pop(key)[1]


class _Facts:
    """What never changes about a kernel: its name, how to count its FLOPs, what it does with its arguments."""

    def __init__(self, function: Any):
        packet = function._overloadpacket
        self.function = function  # a reference, so that no other object gets its id
        self.name = packet._qualified_op_name.removeprefix("aten::")
        self.view = any(result.alias_info and not result.alias_info.is_write for result in function._schema.returns)
        self.flops = EXTRA_FLOPS.get(packet) or _flops_by_shape(flop_registry.get(packet))
        self.gathers = self.name in READ_WHAT_THEY_RETURN
        # Under `torch.inference_mode` a product arrives whole, as `matmul`, and must be taken apart to be counted.
        self.composite = torch._C._dispatch_has_kernel_for_dispatch_key(function.name(), "CompositeImplicitAutograd")
        self.reduces = not self.view and (self.name in CONTRACT or self.name in SHRINK or self.name in RUN_ALONG)


def _flops_by_shape(counter: Any) -> Callable[..., int] | None:
    """PyTorch's own formula, which takes shapes. Its wrapper takes tensors, but flattens them slowly."""
    formula = getattr(counter, "__wrapped__", None)
    if formula is None:
        found: Callable[..., int] | None = counter
        return found

    def flops(*args: Any, out_val: Any, **kwargs: Any) -> int:
        shapes = [arg.shape if isinstance(arg, torch.Tensor) else arg for arg in args]
        named = {name: arg.shape if isinstance(arg, torch.Tensor) else arg for name, arg in kwargs.items()}
        out = out_val.shape if isinstance(out_val, torch.Tensor) else [tensor.shape for tensor in tensors(out_val)]
        return int(formula(*shapes, **named, out_shape=out))

    return flops


def _reduced(name: str, args: Any, kwargs: dict[str, Any], out: Any) -> int:
    """How many numbers this kernel reduces to one. Integer and bool tensors do not count."""
    if name in CONTRACT:
        return int(args[CONTRACT[name]].shape[-1])
    if not args[0].is_floating_point() or not args[0].dim():
        return 0
    if name in RUN_ALONG:
        along = kwargs.get("dim", args[1] if len(args) > 1 and isinstance(args[1], int) else -1)
        return int(args[0].shape[along])
    if len(args) > 1 and isinstance(args[1], torch.Tensor):
        return 0  # `max` or `min` of two tensors, element by element
    return int(args[0].numel() // max(tensors(out)[0].numel(), 1))


def _elements(values: Sequence[Any]) -> int:
    """How many elements all tensors in `values` have together."""
    count = 0
    for value in values:
        if isinstance(value, torch.Tensor):
            count += value.numel()
        elif isinstance(value, SEQUENCES):
            count += _elements(value)
    return count


class _Functions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.left = self.longest_row = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(function, "__name__", "?")
        self.names.add(name)
        if name in WAYS_OUT:
            self.left += sum(tensor.numel() for tensor in tensors(args[:1]))
            self.longest_row = max([self.longest_row, *(t.shape[-1] for t in tensors(args[:1]) if t.dim())])
        return function(*args, **(kwargs or {}))


class _Names(TorchDispatchMode):
    """Records the names of the kernels that were used, and nothing else."""

    _should_skip_dynamo = _Kernels._should_skip_dynamo

    def __init__(self) -> None:
        super().__init__()
        self.operators: set[str] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operators.add(function._overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


class Watch:
    """Record which functions and kernels are used inside the `with` block. With a trap, kernels are left to the trap.

    Nothing is counted, so this is much faster than a `Measurement`.
    """

    def __init__(self, trapped: bool):
        self.functions, self.kernels = _Functions(), None if trapped else _Names()
        self.intact = False

    def __enter__(self) -> "Watch":
        self.functions.__enter__()
        if self.kernels:
            self.kernels.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        self.intact = _get_current_function_mode() is self.functions
        if self.kernels:
            self.intact &= _get_current_dispatch_mode() is self.kernels
            self.kernels.__exit__(*failure)
        self.functions.__exit__(*failure)

    def counts(self) -> dict[str, Any]:
        used = self.functions.names | (self.kernels.operators if self.kernels else set())
        return {"intact": self.intact, "operators": sorted(used)}


class Measurement:
    """Count everything done inside the `with` block; `counts()` returns the numbers."""

    def __init__(self, given: list[torch.Tensor]):
        self.kernels = _Kernels({tensor.untyped_storage().data_ptr() for tensor in given})
        self.functions = _Functions()
        self.intact = False

    def __enter__(self) -> "Measurement":
        self.functions.__enter__()
        self.kernels.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        self.intact = _get_current_dispatch_mode() is self.kernels
        self.kernels.__exit__(*failure)
        self.functions.__exit__(*failure)

    def counts(self) -> dict[str, Any]:
        return {
            "intact": self.intact,
            "flops": int(self.kernels.flops),
            "elements": int(self.kernels.elements),
            "largest": int(self.kernels.largest),
            "live": int(self.kernels.most_live),
            "reduced": int(max(self.kernels.reduced, self.functions.longest_row)),
            "left": int(self.functions.left),
            "operators": sorted(self.kernels.operators | self.functions.names),
        }


class Tracing:
    """Trace Python and NumPy objects inside the `with` block. No watcher runs, because its objects would be traced too."""

    def __init__(self) -> None:
        self.ours = not tracemalloc.is_tracing()  # leave a trace that someone else started alone
        self.intact, self.python = False, 0

    def __enter__(self) -> "Tracing":
        if self.ours:
            tracemalloc.start()
        return self

    def __exit__(self, *failure: Any) -> None:
        self.intact = tracemalloc.is_tracing()
        if self.ours:
            self.python = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()

    def counts(self) -> dict[str, Any]:
        return {"intact": self.intact, "python": int(self.python), "operators": []}
