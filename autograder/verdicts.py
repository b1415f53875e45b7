"""The eight verdicts, and the exception that carries one out of a suite."""

from enum import StrEnum


class Verdict(StrEnum):
    PASS = "pass"
    WRONG = "wrong"
    ERROR = "error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    POLICY = "policy"
    MISSING = "missing"
    GRADER_ERROR = "grader_error"


# A submission takes the gravest verdict among its parts; a part left out says least about the rest.
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


def gravest(verdicts) -> Verdict:
    return min(verdicts, key=GRAVEST_FIRST.index)


class Broken(AssertionError):
    """A promise that was not kept, said in both languages.

    `fatal` means that the student's process is gone, so the rest of this part cannot be asked.
    `evidence` is what it was seen on, kept only where a learner checks their own work (see evidence.py).
    """

    evidence = None

    def __init__(self, verdict: Verdict, en: str, zh: str, fatal: bool = False):
        super().__init__(en)
        self.verdict = verdict
        self.message = {"en": en, "zh": zh}
        self.fatal = fatal

    def __reduce__(self):
        return Broken, (self.verdict, self.message["en"], self.message["zh"], self.fatal)


def wrong(en: str, zh: str) -> Broken:
    return Broken(Verdict.WRONG, en, zh)


def require(condition, en: str, zh: str) -> None:
    """Raise `Broken` unless the condition holds."""
    if not condition:
        raise wrong(en, zh)
