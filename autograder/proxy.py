"""The student as a suite sees it: an object whose functions are called like any other.

Behind it stands a transport with one method, `ask(request) -> answer`. In a learner's notebook that is the performer
itself; when marks count it is the wire to a sandboxed process. A suite cannot tell them apart.
"""

from dataclasses import dataclass, field

import torch

from .student.perform import Performer, tensors_in
from .student.trap import Trap
from .student.wire import Handle, decode_frame
from .verdicts import Broken, Verdict


@dataclass
class Exchange:
    """One question to the student and what came back: the material of a diagnosis.

    Without `request` it cannot be asked again: the answer stands for something that was counted or found out.
    """

    subject: str
    answer: dict
    request: dict | None = None


@dataclass
class Differentiated:
    """What a call returned and the gradients that came with it."""

    value: object
    gradients: list[torch.Tensor | None]
    parameter_gradients: dict[str, torch.Tensor | None] = field(default_factory=dict)


class Local:
    """The transport without a wire: the namespace is in this process."""

    performs = Performer

    def __init__(self, namespace: dict, device: str = "cpu"):
        self.device = device
        self.performer = self.performs(namespace, device, Trap(stays=False) if device == "cpu" else None)

    def ask(self, request: dict) -> dict:
        return decode_frame(self.performer.reply(request))

    def memory(self, forget_peak: bool = False) -> dict[str, int]:
        return {}  # a learner's own process holds much more than the answer


class Student:
    """Call the student's functions by name: `student.causal_mask(3, 5)`."""

    def __init__(self, transport):
        self._transport = transport
        self._part = ""
        self._forbidden = frozenset()
        self._counted: dict[tuple, dict] = {}
        self.exchanges: list[Exchange] = []

    def begin(self, part) -> None:
        """Forget the exchanges of the last test, and the counts of another part; apply the rules of `part`."""
        if (self._part, self._forbidden) != (part.name, part.forbidden):
            self._counted = {}
        self._part, self._forbidden, self.exchanges = part.name, part.forbidden, []

    @property
    def device(self) -> str:
        """Where the student's tensors and generators live."""
        return self._transport.device

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.ask("call", name, args=args, kwargs=kwargs)["value"]

    def defined(self, names: list[str]) -> dict[str, str | None]:
        return self.ask("defined", names=list(names))["value"]

    def vjp(self, name, *args, wrt, cotangents, **kwargs) -> Differentiated:
        """Call and differentiate: `wrt` are positions or keywords, `cotangents` one per output (None: not used)."""
        answer = self.ask("call", name, args=args, kwargs=kwargs, wrt=list(wrt), cotangents=list(cotangents))
        return _differentiated(answer, len(wrt))

    def measure(self, name, *args, wrt=(), cotangents=None, trace=False, **kwargs) -> dict:
        """The counts of one call (see student/measure.py); with `cotangents`, of the call and its backward pass.

        With `trace`, Python and NumPy objects are followed and not tensors.
        `outside` is how many bytes the process grew at its peak by the kernel's own count, for what runs inside can lie.
        It is 0 where nobody looks from outside.

        What a call costs depends on shapes, not on the numbers: within a part each shape is counted once. The numbers
        that came back say nothing then, and are left out of the exchange.
        """
        asked = {"args": args, "kwargs": kwargs, "wrt": list(wrt)}
        if cotangents is not None:
            asked["cotangents"] = list(cotangents)
        shapes = (name, trace, _outline(asked))
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

    def spoils(self, name, *args, **kwargs) -> bool:
        """Whether a call changes the tensors it is given."""
        answer = self.ask("call", name, args=args, kwargs=kwargs)
        if "changed" not in answer:
            raise _malformed()
        return any(answer["changed"])

    def refuses(self, name, *args, **kwargs) -> bool:
        """Whether a call raises ValueError, as promised for bad arguments."""
        try:
            self.ask("call", name, args=args, kwargs=kwargs)
        except Raised as raised:
            return "ValueError" in raised.kinds
        return False

    def recount(self, facts: list) -> None:
        """Let `facts` stand for everything asked in this test so far: random answers differ, what they show does not."""
        self.exchanges[:] = [Exchange(self._part, {"value": facts})]

    def stirs(self, name, *args, **kwargs) -> bool:
        """Whether a call draws from, or seeds, the generator that all of PyTorch shares."""
        return bool(self.ask("call", name, args=args, kwargs=kwargs).get("stirred"))

    def ask(self, do: str, target=None, **request) -> dict:
        if target is not None:
            request["target"] = target
        if do == "call" and self._forbidden:
            request["forbidden"] = sorted(self._forbidden)
        subject = target if isinstance(target, str) else self._part
        request = {"do": do, **request}
        answer = checked(self._transport.ask(request))
        if do != "defined":
            self.exchanges.append(Exchange(subject, answer, _snapshot(request)))
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
        if isinstance(answer.get("value"), Handle):
            answer["value"] = Module(self, answer["value"], subject)
        elif any(True for _ in tensors_in(request.get("args", ()))):
            self._demand_same_device(answer.get("value"), subject)
        return answer

    def _demand_same_device(self, value, subject: str) -> None:
        for tensor in tensors_in(value):
            device = getattr(tensor, "came_from", "cpu")
            if device != self._transport.device:
                raise Broken(
                    Verdict.WRONG,
                    f"{subject}: the result is on {device}, the inputs are on {self._transport.device}",
                    f"{subject}：结果在 {device} 上，输入在 {self._transport.device} 上",
                )


def _snapshot(value):
    """The same with copies of all tensors, for a suite may change its own after asking."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, list | tuple):
        return type(value)(map(_snapshot, value))
    if isinstance(value, dict):
        return {key: _snapshot(item) for key, item in value.items()}
    return value


def _outline(value):
    """Shapes and dtypes in place of tensors; everything else as it is."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, value.shape)
    if isinstance(value, list | tuple):
        return (type(value), *map(_outline, value))
    if isinstance(value, dict):
        return tuple((key, _outline(item)) for key, item in value.items())
    return value


class Module:
    """A module that lives with the student. Parameters are set and read by name."""

    def __init__(self, student: Student, handle: Handle, name: str):
        self._student, self._handle, self._name = student, handle, name

    def __call__(self, *args, **kwargs):
        return self._student.ask("call", self._handle, args=args, kwargs=kwargs)["value"]

    def vjp(self, *args, wrt, cotangents, **kwargs) -> Differentiated:
        answer = self._student.ask(
            "call", self._handle, args=args, kwargs=kwargs, wrt=list(wrt), cotangents=list(cotangents), parameters=True
        )
        return _differentiated(answer, len(wrt))

    def parameters(self) -> dict[str, torch.Tensor]:
        return self._student.ask("parameters", self._handle)["value"]

    def load(self, **state: torch.Tensor) -> "Module":
        """Set parameters; a dot in a name is written as two underscores: `W_q__weight`."""
        named = {name.replace("__", "."): tensor for name, tensor in state.items()}
        self._student.ask("load", self._handle, state=named)
        return self

    def train(self, training: bool = True) -> "Module":
        self._student.ask("mode", self._handle, training=training)
        return self

    def eval(self) -> "Module":
        return self.train(False)

    def to(self, dtype: torch.dtype) -> "Module":
        self._student.ask("mode", self._handle, training=True, dtype=dtype)
        return self


class Raised(Broken):
    """The student's code raised. Unwritten code, exhausted memory and real errors get different verdicts."""

    def __init__(self, subject: str, error: dict):
        kind, text = str(error.get("kind")), str(error.get("text"))
        self.kinds = [str(name) for name in error.get("kinds", [])]
        if kind == "NotImplementedError" and not str(error.get("raised_in")).startswith("torch"):
            verdict, en, zh = Verdict.MISSING, "not written yet", "还没有写"
        elif kind == "NameError" and text == f"name {subject!r} is not defined":
            verdict, en, zh = Verdict.MISSING, "not defined", "没有定义"
        elif kind == "MemoryError":
            verdict, en, zh = Verdict.MEMORY, "asks for more memory than is allowed", "申请的内存超过了限制"
        else:
            verdict, en, zh = Verdict.ERROR, f"raises {kind}: {text}", f"抛出 {kind}：{text}"
            for function, number, source in error.get("lines", []):
                en += f"\n  line {number}, in {function}: {source}"
                zh += f"\n  第 {number} 行，{function} 中：{source}"
        super().__init__(verdict, f"{subject}: {en}", f"{subject}：{zh}")


def _differentiated(answer: dict, wanted: int) -> Differentiated:
    gradients, by_name = answer.get("gradients", []), answer.get("parameter_gradients", {})
    if len(gradients) != wanted or not all(
        gradient is None or isinstance(gradient, torch.Tensor) for gradient in [*gradients, *by_name.values()]
    ):
        raise _malformed()
    return Differentiated(answer["value"], gradients, by_name)


def _malformed() -> Broken:
    return Broken(Verdict.POLICY, "the answer is not in the agreed form", "回答不符合约定的格式", fatal=True)


def checked(answer) -> dict:
    """An answer from beyond the trust line may be anything; take only what has the right form."""
    error = answer.get("error", {}) if isinstance(answer, dict) else None
    well_formed = (
        isinstance(error, dict)
        and ("error" in answer or "value" in answer)
        and isinstance(error.get("kinds", []), list)
        and isinstance(error.get("lines", []), list)
        and all(isinstance(line, list) and len(line) == 3 for line in error.get("lines", []))
        and _are_counts(answer.get("counts", {}))
        and isinstance(answer.get("changed", []), list)
        and isinstance(answer.get("gradients", []), list)
        and isinstance(answer.get("parameter_gradients", {}), dict)
    )
    if not well_formed:
        raise _malformed()
    return answer


def _are_counts(counts) -> bool:
    if not isinstance(counts, dict) or not isinstance(counts.get("operators", []), list):
        return False
    if not isinstance(counts.get("intact", False), bool):
        return False
    numbers = (counts.get(name, 0) for name in ("flops", "elements", "largest", "live", "reduced", "left", "python"))
    return all(isinstance(number, int) for number in numbers) and all(
        isinstance(name, str) for name in counts.get("operators", [])
    )
