"""A traceback in Python's style that shows only the learner's own cells."""

import linecache
import sys
from types import CodeType
from typing import Any

CONTEXT = 2  # lines shown before and after
FAILED_LINE = "---->"  # in front of the line that failed
MOST_LINES = 24  # an endless recursion has thousands


def traceback_of(raised: BaseException, namespace: dict[str, Any]) -> str:
    """The frames of the learner's own code, the innermost last. Each shows the line that failed and its neighbours."""
    frames, step = [], raised.__traceback__
    while step is not None:
        if step.tb_frame.f_globals is namespace:
            frames.append(_frame(step.tb_frame.f_code, step.tb_lineno))
        step = step.tb_next
    return "\n".join([*frames, f"{type(raised).__name__}: {raised}"])


def shortened(traceback: str) -> str:
    """The first and last lines of a long traceback. An error without a message loses its colon."""
    lines = traceback.removesuffix(": ").split("\n")
    if len(lines) > MOST_LINES:
        lines[MOST_LINES // 2 : -MOST_LINES // 2] = ["…"]
    return "\n".join(lines)


def _frame(code: CodeType, failed: int) -> str:
    lines = [f"{_place(code.co_filename)}, line {failed}, in {code.co_name}"]
    for number in range(max(failed - CONTEXT, code.co_firstlineno), failed + CONTEXT + 1):
        source = linecache.getline(code.co_filename, number).rstrip()
        if source or number == failed:
            lines.append(f"{FAILED_LINE if number == failed else '     '} {number:3} {source}")
    return "\n".join(lines)


def _place(filename: str) -> str:
    """`Cell In[3]` if IPython knows the cell (from version 8.7 on), otherwise the file."""
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    named = getattr(shell.compile, "format_code_name", None) if shell else None
    known = named and named(filename)
    return " ".join(known) if known else filename
