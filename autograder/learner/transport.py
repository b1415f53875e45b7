"""The transport to the learner's own notebook: its functions are called in this process."""

from typing import Any

from autograder.catalogue import Part
from autograder.exam.proxy import Local
from autograder.student.perform import Performer
from autograder.student.wire import Answer, Request
from autograder.verdicts import Broken, Verdict

from .traceback import traceback_of


class RememberingPerformer(Performer):
    """Keeps the last error, with its traceback."""

    raised: BaseException | None = None

    def describe(self, raised: BaseException) -> dict[str, Any]:
        self.raised = raised
        return super().describe(raised)


class NotebookTransport(Local):
    """Calls functions in the notebook's namespace. An interrupt ends the whole check, not just one promise."""

    performer_class = RememberingPerformer
    performer: RememberingPerformer

    def __init__(self, namespace: dict[str, Any], part: Part):
        super().__init__(namespace)
        self.part = part

    def ask(self, request: Request) -> Answer:
        answer = super().ask(request)
        if isinstance(self.performer.raised, KeyboardInterrupt):
            raise Broken(
                Verdict.TIMEOUT,
                f"{self.part.name}: you stopped it before it answered: does it loop forever?",
                f"{self.part.name}：还没有回答就被你停下了：是不是死循环？",
                fatal=True,
            )
        return answer

    def defines(self, name: str) -> bool:
        return name in self.performer.namespace

    def last_traceback(self) -> str:
        """The traceback of the last error, without our frames and PyTorch's; empty if there was no error."""
        raised = self.performer.raised
        return "" if raised is None else traceback_of(raised, self.performer.namespace)
