"""Check the answers that cross the trust line. An answer may be anything; only the agreed form is accepted."""

from dataclasses import dataclass, field
from typing import Any

import torch

from autograder.student.wire import Answer, Request
from autograder.verdicts import Broken, Verdict

COUNTS = ("flops", "elements", "largest", "live", "reduced", "left", "python")


@dataclass
class Differentiated:
    """What a call returned, and its gradients."""

    value: Any
    gradients: list[torch.Tensor | None]
    parameter_gradients: dict[str, torch.Tensor | None] = field(default_factory=dict)


class Raised(Broken):
    """The student's code raised. Missing code, too much memory and other errors get different verdicts."""

    def __init__(self, subject: str, error: dict[str, Any]):
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


def checked(answer: Any, request: Request) -> Answer:
    """The answer, if it has the right form for this request. Otherwise raises `Broken`."""
    if not _is_well_formed(answer) or (request["do"] == "call" and "error" not in answer and not _is_of_a_call(answer)):
        raise malformed()
    found: Answer = answer
    return found


def differentiated(answer: Answer, wanted: int) -> Differentiated:
    gradients, by_name = answer.get("gradients", []), answer.get("parameter_gradients", {})
    if len(gradients) != wanted or not all(
        gradient is None or isinstance(gradient, torch.Tensor) for gradient in [*gradients, *by_name.values()]
    ):
        raise malformed()
    return Differentiated(answer["value"], gradients, by_name)


def malformed() -> Broken:
    return Broken(Verdict.POLICY, "the answer is not in the agreed form", "回答不符合约定的格式", fatal=True)


def _is_well_formed(answer: Any) -> bool:
    error = answer.get("error", {}) if isinstance(answer, dict) else None
    return (
        isinstance(error, dict)
        and ("error" in answer or "value" in answer)
        and isinstance(error.get("kinds", []), list)
        and isinstance(error.get("lines", []), list)
        and all(isinstance(line, list) and len(line) == 3 for line in error.get("lines", []))
        and _are_counts(answer.get("counts", {}))
        and isinstance(answer.get("gradients", []), list)
        and isinstance(answer.get("parameter_gradients", {}), dict)
    )


def _is_of_a_call(answer: Answer) -> bool:
    """Whether it says which inputs changed and whether the global generator was used, as every call must."""
    changed = answer.get("changed")
    return (
        isinstance(changed, list)
        and all(isinstance(item, bool) for item in changed)
        and isinstance(answer.get("stirred"), bool)
    )


def _are_counts(counts: Any) -> bool:
    if not isinstance(counts, dict) or not isinstance(counts.get("operators", []), list):
        return False
    if not isinstance(counts.get("intact", False), bool):
        return False
    return all(isinstance(counts.get(name, 0), int) for name in COUNTS) and all(
        isinstance(name, str) for name in counts.get("operators", [])
    )
