"""Make forbidden operators raise an error, at a level that Python code cannot switch off.

The watchers in `measure` see one thread and can be disabled for a moment. A trap replaces a kernel in PyTorch's
dispatcher: it works in every thread, behind disabled modes, and from TorchScript.
Does not stop: code that finds the trap in the memory of its own process and removes it.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Trap:
    """With `stays` the trap remains set between calls. Use False where other code computes in the same process."""

    def __init__(self, stays: bool):
        self.names: frozenset[str] = frozenset()
        self.sprung: set[str] = set()
        self.stays = stays
        self._library: Any = None

    @contextmanager
    def waiting_for(self, names: Iterable[str]) -> Iterator[None]:
        """Inside the block these operators raise an error; `sprung` collects the names of those that were called."""
        self.set(names)
        try:
            yield
        finally:
            if not self.stays:
                self.set(())

    def set(self, names: Iterable[str]) -> None:
        """From now on exactly these operators of `aten` raise an error."""
        wanted = frozenset(names)
        if self.names == wanted:
            return
        if self._library is not None:
            self._library._destroy()  # restores the original kernels
        self.names, self._library = wanted, torch.library.Library("aten", "IMPL") if wanted else None
        for name in self.names:
            packet = getattr(torch.ops.aten, name, None)  # None for a Python function, which the watchers see
            for overload in packet.overloads() if packet is not None else ():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # PyTorch warns that a kernel is overridden
                    self._library.impl(
                        name if overload == "default" else f"{name}.{overload}", self._refuse(name), "CPU"
                    )

    def _refuse(self, name: str) -> Callable[..., Any]:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            self.sprung.add(name)
            raise RuntimeError(f"{name} does the exercise for you; write it by hand")

        return refuse
