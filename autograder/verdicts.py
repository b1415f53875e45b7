"""The eight verdicts, and the exception with which a suite reports one."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from .language import Text


class Verdict(StrEnum):
    PASS = "pass"
    WRONG = "wrong"
    ERROR = "error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    POLICY = "policy"
    MISSING = "missing"
    GRADER_ERROR = "grader_error"


VERDICT_WORDS = {
    Verdict.PASS: Text("right", "正确"),
    Verdict.WRONG: Text("wrong", "错误"),
    Verdict.ERROR: Text("error", "出错"),
    Verdict.TIMEOUT: Text("too slow", "超时"),
    Verdict.MEMORY: Text("too much memory", "内存超限"),
    Verdict.POLICY: Text("not allowed", "违规"),
    Verdict.MISSING: Text("not written", "未完成"),
    Verdict.GRADER_ERROR: Text("grader error", "评分程序出错"),
}

# A submission gets the most serious verdict of its parts. A missing part says little about the other parts.
GRAVEST_FIRST = (
    Verdict.GRADER_ERROR,
    Verdict.POLICY,
    Verdict.TIMEOUT,
    Verdict.MEMORY,
    Verdict.ERROR,
    Verdict.WRONG,
    Verdict.MISSING,
    Verdict.PASS,
)


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    return min(verdicts, key=GRAVEST_FIRST.index)


class Broken(AssertionError):
    """A broken promise, with a message in both languages.

    `fatal` means that the student's process has ended, so the other tests of this part cannot run.
    `evidence` holds the inputs and both answers. It exists only in a learner's own check (see exam/evidence.py).
    """

    evidence: Any = None  # an `Evidence`, or None

    def __init__(self, verdict: Verdict, en: str, zh: str, fatal: bool = False):
        super().__init__(en)
        self.verdict = verdict
        self.message = Text(en, zh)
        self.fatal = fatal

    def __reduce__(self) -> tuple[type["Broken"], tuple[Verdict, str, str, bool]]:
        return Broken, (self.verdict, self.message.en, self.message.zh, self.fatal)

    def about(self, subject: str) -> "Broken":
        """The same error, with the name of the function in front of the message."""
        return Broken(self.verdict, f"{subject}: {self.message.en}", f"{subject}：{self.message.zh}", self.fatal)


def wrong(en: str, zh: str) -> Broken:
    return Broken(Verdict.WRONG, en, zh)


def require(condition: object, en: str, zh: str) -> None:
    """Raise `Broken` unless the condition holds."""
    if not condition:
        raise wrong(en, zh)
