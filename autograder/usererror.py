"""A learner's error as Python would show it, cut to the learner's own cells."""

import linecache
import sys

from .proxy import Local
from .student.perform import Performer

CONTEXT = 2  # lines shown before and after


class Remembering(Performer):
    """Keeps the last error it met, traceback and all."""

    raised: BaseException | None = None

    def told(self, raised: BaseException) -> dict:
        self.raised = raised
        return super().told(raised)


class OwnNotebook(Local):
    """The transport to the namespace of the notebook that is being worked on."""

    performs = Remembering

    def last_error(self) -> str:
        """The traceback of the last error without any frame of ours or of PyTorch; empty when there was none."""
        raised = self.performer.raised
        return "" if raised is None else trace(raised, self.performer.namespace)


def trace(raised: BaseException, namespace: dict) -> str:
    """The learner's own frames, the innermost last, each with the line that failed and its neighbours."""
    frames, step = [], raised.__traceback__
    while step is not None:
        if step.tb_frame.f_globals is namespace:
            frames.append(_frame(step.tb_frame.f_code, step.tb_lineno))
        step = step.tb_next
    return "\n".join([*frames, f"{type(raised).__name__}: {raised}"])


def _frame(code, failed: int) -> str:
    lines = [f"{_place(code.co_filename)}, line {failed}, in {code.co_name}"]
    for number in range(max(failed - CONTEXT, code.co_firstlineno), failed + CONTEXT + 1):
        source = linecache.getline(code.co_filename, number).rstrip()
        if source or number == failed:
            lines.append(f"{'---->' if number == failed else '     '} {number:3} {source}")
    return "\n".join(lines)


def _place(filename: str) -> str:
    """`Cell In[3]` where IPython knows the cell, the file otherwise."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    known = shell and shell.compile.format_code_name(filename)
    return " ".join(known) if known else filename
