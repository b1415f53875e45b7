"""The student as a suite sees it: an object with the student's functions as methods.

Behind it is a transport with one main method, `ask(request) -> answer`. In a learner's notebook the transport calls the
functions directly; when marks count it talks to a sandboxed process. A suite cannot see the difference.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from autograder.catalogue import Part
from autograder.student.nested import frozen, mapped_tensors, tensors
from autograder.student.perform import Performer
from autograder.student.trap import Trap
from autograder.student.wire import Answer, Handle, Request, decode_frame
from autograder.verdicts import Broken, Verdict

from .answers import Differentiated, Raised, checked, differentiated

Counts = dict[str, int]
Key = int | str  # an argument: its position or its name


class Transport(Protocol):
    """How questions reach a student."""

    @property
    def device(self) -> str: ...

    def ask(self, request: Request) -> Answer: ...

    def memory(self, forget_peak: bool = False) -> dict[str, int]:
        """The memory of the student's process in kB, measured by the kernel; empty if it is not measured."""
        ...


@dataclass
class Exchange:
    """One question to the student and the answer. A diagnosis compares exchanges.

    `request` is None if the question cannot be asked again, because `answer` is a summary that the suite wrote.
    """

    subject: str
    answer: Answer
    request: Request | None = None


class Local:
    """A transport to a namespace in this process."""

    performer_class = Performer

    def __init__(self, namespace: dict[str, Any], device: str = "cpu"):
        self.device = device
        self.performer = self.performer_class(namespace, device, Trap(stays=False) if device == "cpu" else None)

    def ask(self, request: Request) -> Answer:
        answer: Answer = decode_frame(self.performer.reply(request))
        return answer

    def memory(self, forget_peak: bool = False) -> dict[str, int]:
        return {}  # a learner's own process holds much more than the answer


class Student:
    """Call the student's functions by name: `student.causal_mask(3, 5)`."""

    def __init__(self, transport: Transport):
        self._transport = transport
        self._part = ""
        self._forbidden: frozenset[str] = frozenset()
        self._counted: dict[Any, Counts] = {}
        self.exchanges: list[Exchange] = []

    def begin(self, part: Part) -> None:
        """Start a test of `part`: forget the last test's exchanges and another part's counts, and apply the part's rules."""
        if (self._part, self._forbidden) != (part.name, part.forbidden):
            self._counted = {}
        self._part, self._forbidden, self.exchanges = part.name, part.forbidden, []

    @property
    def device(self) -> str:
        """The device of the student's tensors and generators."""
        return self._transport.device

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.ask("call", name, args=args, kwargs=kwargs)["value"]

    def defined(self, names: Iterable[str]) -> dict[str, str | None]:
        """What each name is: "function", "class" or "value"; None when it is not defined."""
        found: dict[str, str | None] = self.ask("defined", names=list(names))["value"]
        return found

    def vjp(
        self, name: str, *args: Any, wrt: Sequence[Key], cotangents: Sequence[torch.Tensor | None], **kwargs: Any
    ) -> Differentiated:
        """Call and differentiate: `wrt` are positions or keywords, `cotangents` one per output (None: not used)."""
        answer = self.ask("call", name, args=args, kwargs=kwargs, wrt=list(wrt), cotangents=list(cotangents))
        return differentiated(answer, len(wrt))

    def measure(
        self,
        name: str,
        *args: Any,
        wrt: Sequence[Key] = (),
        cotangents: Sequence[torch.Tensor | None] | None = None,
        trace: bool = False,
        **kwargs: Any,
    ) -> Counts:
        """The counts of one call (see student/measure.py); with `cotangents`, of the call and its backward pass.

        With `trace`, the memory of Python and NumPy objects is counted instead of tensors.
        `outside` is how many bytes the process grew at its peak, measured by the kernel, because code inside the process
        can lie. It is 0 if nothing measures from outside.

        The cost of a call depends on shapes, not on values, so each shape is counted once per part. The exchange does not
        keep the returned values, because they are not compared.
        """
        asked: dict[str, Any] = {"args": args, "kwargs": kwargs, "wrt": list(wrt)}
        if cotangents is not None:
            asked["cotangents"] = list(cotangents)
        shapes = (name, trace, frozen(asked, _outline))
        if shapes in self._counted:
            self.exchanges.append(Exchange(name, {"value": None}))
            return self._counted[shapes]
        before = self._transport.memory(forget_peak=True)
        counts = self.ask("call", name, **asked, **{"trace" if trace else "count": True}).get("counts", {})
        after = self._transport.memory()
        self.exchanges[-1] = Exchange(name, {"value": None})
        grown = after.get("VmHWM", 0) - before.get("VmRSS", 0)
        self._counted[shapes] = {**counts, "outside": max(grown, 0) * 1024}
        return self._counted[shapes]

    def changes_inputs(self, name: str, *args: Any, **kwargs: Any) -> bool:
        """Whether a call changes the tensors it is given."""
        return any(self.ask("call", name, args=args, kwargs=kwargs)["changed"])

    def changed_inputs(self) -> bool:
        """Whether the last call changed the tensors it was given."""
        return any(self.exchanges[-1].answer["changed"])

    def refuses(self, name: str, *args: Any, **kwargs: Any) -> bool:
        """Whether a call raises ValueError, as it should for bad arguments."""
        try:
            self.ask("call", name, args=args, kwargs=kwargs)
        except Raised as raised:
            return "ValueError" in raised.kinds
        return False

    def draws_random(self, name: str, *args: Any, **kwargs: Any) -> bool:
        """Whether a call draws from, or seeds, PyTorch's global generator."""
        return bool(self.ask("call", name, args=args, kwargs=kwargs)["stirred"])

    def replace_transcript(self, facts: Sequence[Any]) -> None:
        """Replace all exchanges of this test by `facts`.

        Random answers differ between calls, but the facts about them do not. A diagnosis compares the facts.
        """
        self.exchanges[:] = [Exchange(self._part, {"value": facts})]

    def replace_last_answer(self, value: Any) -> None:
        """Replace the last answer by `value`, which a diagnosis then compares."""
        self.exchanges[-1] = Exchange(self._part, {"value": value})

    def keep_only_last_exchange(self) -> None:
        del self.exchanges[:-1]

    def error_kinds(self) -> list[str | None]:
        """For each question of this test, the kind of error it raised, or None."""
        return [exchange.answer.get("error", {}).get("kind") for exchange in self.exchanges]

    def ask(self, do: str, target: str | Handle | None = None, **request: Any) -> Answer:
        if target is not None:
            request["target"] = target
        if do == "call" and self._forbidden:
            request["forbidden"] = sorted(self._forbidden)
        subject = target if isinstance(target, str) else self._part
        request = {"do": do, **request}
        answer = checked(self._transport.ask(request), request)
        if do != "defined":
            copies = mapped_tensors(request, torch.clone)  # a suite may change its own tensors after asking
            self.exchanges.append(Exchange(subject, answer, copies))
        self._demand_no_forbidden_help(answer, request, subject)
        if isinstance(answer.get("value"), Handle):
            answer["value"] = Module(self, answer["value"], subject)
        elif tensors(request.get("args", ())):
            self._demand_same_device(answer.get("value"), subject)
        return answer

    def _demand_no_forbidden_help(self, answer: Answer, request: Request, subject: str) -> None:
        """Raise if a forbidden operator was used, if the call raised, or if the code disabled the watcher."""
        counts = answer.get("counts", {})
        if used := self._forbidden.intersection(counts.get("operators", ())):
            name = min(used, key=len)
            raise Broken(
                Verdict.POLICY,
                f"{subject}: calls {name}, which does the exercise for you; write it by hand",
                f"{subject}：调用了 {name}，它替你完成了练习；请自己手写",
            )
        if "error" in answer:
            raise Raised(subject, answer["error"])
        watched = request.get("count") or request.get("trace") or request.get("forbidden")
        if watched and not counts.get("intact"):
            raise Broken(
                Verdict.POLICY,
                f"{subject}: the code switched off the watch over operators",
                f"{subject}：代码关闭了对算子的监视",
            )

    def _demand_same_device(self, value: Any, subject: str) -> None:
        for tensor in tensors(value):
            device = getattr(tensor, "came_from", "cpu")
            if device != self._transport.device:
                raise Broken(
                    Verdict.WRONG,
                    f"{subject}: the result is on {device}, the inputs are on {self._transport.device}",
                    f"{subject}：结果在 {device} 上，输入在 {self._transport.device} 上",
                )


def _outline(leaf: Any) -> Any:
    """The dtype and shape of a tensor; any other value unchanged."""
    return (leaf.dtype, leaf.shape) if isinstance(leaf, torch.Tensor) else leaf


class Module:
    """A module in the student's process. Parameters are set and read by name."""

    def __init__(self, student: Student, handle: Handle, name: str):
        self._student, self.handle, self.name = student, handle, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._student.ask("call", self.handle, args=args, kwargs=kwargs)["value"]

    def vjp(
        self, *args: Any, wrt: Sequence[Key], cotangents: Sequence[torch.Tensor | None], **kwargs: Any
    ) -> Differentiated:
        answer = self._student.ask(
            "call", self.handle, args=args, kwargs=kwargs, wrt=list(wrt), cotangents=list(cotangents), parameters=True
        )
        return differentiated(answer, len(wrt))

    def parameters(self) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = self._student.ask("parameters", self.handle)["value"]
        return found

    def load(self, **state: torch.Tensor) -> "Module":
        """Set parameters; a dot in a name is written as two underscores: `W_q__weight`."""
        named = {name.replace("__", "."): tensor for name, tensor in state.items()}
        self._student.ask("load", self.handle, state=named)
        return self

    def train(self, training: bool = True) -> "Module":
        self._student.ask("mode", self.handle, training=training)
        return self

    def eval(self) -> "Module":
        return self.train(False)

    def to(self, dtype: torch.dtype) -> "Module":
        self._student.ask("mode", self.handle, training=True, dtype=dtype)
        return self
