"""Run a notebook's code cells as IPython would, without a kernel.

Magics, `display`, top-level `await` and the value of a last expression work. Shell commands are skipped: an answer must
not depend on them, and `!pip install` must not break it. Printed text is kept up to a limit.
"""

import io
import os
import sys
from typing import Any

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from .perform import describe
from .wire import Answer

SHELL_MAGICS = "bash sh script system sx ! perl ruby javascript pypy python2 python3 cmd html js svg latex".split()
NOT_RUN = "(shell commands are not run while grading · 评分时不执行 shell 命令)"


class Bounded(io.TextIOBase):
    """Keeps the text up to a limit. Beyond the limit it only counts characters."""

    def __init__(self, limit: int):
        self.limit, self.size = limit, 0
        self.kept: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        text = str(text)
        room = self.limit - self.size
        if room > 0:
            self.kept.append(text[:room])
        self.size += len(text)
        return len(text)

    def text(self) -> str:
        cut = f"\n… {self.size - self.limit} more characters" if self.size > self.limit else ""
        return "".join(self.kept) + cut


class _Hook(DisplayHook):  # type: ignore[misc]
    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: dict[str, str], md_dict: dict[str, Any] | None = None) -> None:
        sys.stdout.write(format_dict.get("text/plain", "") + "\n")


class _Publisher(DisplayPublisher):  # type: ignore[misc]
    def publish(self, data: dict[str, str], metadata: dict[str, Any] | None = None, **rest: Any) -> None:
        sys.stdout.write(data.get("text/plain", "") + "\n")


class _Compiler(CachingCompiler):  # type: ignore[misc]
    """Uses the name of the cell in errors and tracebacks."""

    cell: str | None = None

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        name: str = self.cell or super().get_code_name(raw_code, transformed_code, number)
        return name

    def format_code_name(self, name: str) -> None:
        return None  # IPython then shows the name unchanged


class Shell(InteractiveShell):  # type: ignore[misc]
    compiler_class = Type(_Compiler)
    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)

    def system(self, command: str) -> None:
        sys.stdout.write(NOT_RUN + "\n")

    system_raw = system_piped = system

    def getoutput(self, command: str, split: bool = True, depth: int = 0) -> list[str]:
        return []

    def enable_gui(self, gui: str | None = None) -> None:
        pass  # no window can be shown here

    def showtraceback(self, *args: Any, **kwargs: Any) -> None:
        pass  # errors are reported as data

    showsyntaxerror = showindentationerror = showtraceback


def new_shell() -> Shell:
    """A shell that starts no thread and writes no history."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.cache_size = 0
    shell: Shell = Shell.instance(config=config)
    for name in SHELL_MAGICS:
        shell.register_magic_function(lambda line, cell="": sys.stdout.write(NOT_RUN + "\n"), "line_cell", name)
    return shell


def run(shell: Shell, source: str, output_limit: int, name: str | None = None) -> Answer:
    """Run one cell. Returns what it printed and what it raised. `name` is what messages call the cell."""
    shell.compile.cell = name
    printed = Bounded(output_limit)
    saved = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = printed
    try:
        result = shell.run_cell(source, store_history=False)
        raised = result.error_before_exec or result.error_in_exec
    except BaseException as escaped:
        raised = escaped
    finally:
        sys.stdout, sys.stderr = saved
    error = None if raised is None else describe(raised, shell.user_ns)
    if error is not None and isinstance(raised, SyntaxError):
        error["lines"] = [["cell", raised.lineno or 0, (raised.text or "").strip()[:200]]]
    return {"value": {"output": printed.text(), "error": error}}


def silence() -> None:
    """Send the standard file descriptors to /dev/null, so that native code prints nothing."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
