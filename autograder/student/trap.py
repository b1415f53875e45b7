"""Operators that do the exercise for the learner refuse to run, below everything that Python can switch off.

The watchers of `measure` follow one thread and can be taken off for a moment. A trap is a kernel of its own in PyTorch's
dispatcher: it is met from every thread, behind disabled modes, and from TorchScript.
Does not stop: code that finds the trap in the memory of its own process and takes it out.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Trap:
    """`stays` leaves it set between two calls; where others compute in the same process, it is set for the call alone."""

    def __init__(self, stays: bool):
        self.names: frozenset[str] = frozenset()
        self.sprung: set[str] = set()
        self.stays = stays
        self._library: Any = None

    @contextmanager
    def waiting_for(self, names: Iterable[str]) -> Iterator[None]:
        """Inside, these operators refuse to run; `sprung` gathers those that were tried."""
        self.set(names)
        try:
            yield
        finally:
            if not self.stays:
                self.set(())

    def set(self, names: Iterable[str]) -> None:
        """Let these operators of `aten`, and no others, refuse to run from now on."""
        wanted = frozenset(names)
        if self.names == wanted:
            return
        if self._library is not None:
            self._library._destroy()  # the operators are again what they were
        self.names, self._library = wanted, torch.library.Library("aten", "IMPL") if wanted else None
        for name in self.names:
            packet = getattr(torch.ops.aten, name, None)  # a function of Python is left to the watchers
            for overload in packet.overloads() if packet is not None else ():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a kernel is overridden: that is the point
                    self._library.impl(
                        name if overload == "default" else f"{name}.{overload}", self._refuse(name), "CPU"
                    )

    def _refuse(self, name: str) -> Callable[..., Any]:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            self.sprung.add(name)
            raise RuntimeError(f"{name} does the exercise for you; write it by hand")

        return refuse
