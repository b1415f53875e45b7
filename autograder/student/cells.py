"""Run a notebook's code cells as IPython would, without a kernel.

Magics, `display`, top-level `await` and the value of a last expression work. Shell commands are not run: an answer must
not depend on them, and `!pip install` must not spoil it. What is printed is kept up to a limit.
"""

import io
import os
import sys

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from .perform import describe

SHELL_MAGICS = (
    "bash", "sh", "script", "system", "sx", "!", "perl", "ruby", "javascript", "pypy", "python2", "python3", "cmd",
    "html", "js", "svg", "latex",
)  # fmt: skip
NOT_RUN = "(shell commands are not run while grading · 评分时不执行 shell 命令)"


class Bounded(io.TextIOBase):
    """Keeps what is written until it is too much, then only counts."""

    def __init__(self, limit: int):
        self.limit, self.kept, self.size = limit, [], 0

    def writable(self):
        return True

    def write(self, text) -> int:
        text = str(text)
        room = self.limit - self.size
        if room > 0:
            self.kept.append(text[:room])
        self.size += len(text)
        return len(text)

    def text(self) -> str:
        cut = f"\n… {self.size - self.limit} more characters" if self.size > self.limit else ""
        return "".join(self.kept) + cut


class _Hook(DisplayHook):
    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        sys.stdout.write(format_dict.get("text/plain", "") + "\n")


class _Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, **rest):
        sys.stdout.write(data.get("text/plain", "") + "\n")


class _Compiler(CachingCompiler):
    """In errors and tracebacks, code goes by the name of its cell."""

    cell: str | None = None

    def get_code_name(self, raw_code, transformed_code, number):
        return self.cell or super().get_code_name(raw_code, transformed_code, number)

    def format_code_name(self, name):
        return None  # a name is shown as it is


class Shell(InteractiveShell):
    compiler_class = Type(_Compiler)
    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)

    def system(self, command):
        sys.stdout.write(NOT_RUN + "\n")

    system_raw = system_piped = system

    def getoutput(self, command, split=True, depth=0):
        return []

    def enable_gui(self, gui=None):
        pass  # there is nobody to look at a window

    def showtraceback(self, *args, **kwargs):
        pass  # errors are reported as data

    showsyntaxerror = showindentationerror = showtraceback


def new_shell() -> Shell:
    """A shell that starts no thread and writes no history."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.cache_size = 0
    shell = Shell.instance(config=config)
    for name in SHELL_MAGICS:
        shell.register_magic_function(lambda line, cell="": sys.stdout.write(NOT_RUN + "\n"), "line_cell", name)
    return shell


def run(shell: Shell, source: str, output_limit: int, name: str | None = None) -> dict:
    """Run one cell: what it printed, and what it raised. `name` is how its learner knows it."""
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
    error = describe(raised, shell.user_ns) if raised is not None else None
    if isinstance(raised, SyntaxError):
        error["lines"] = [["cell", raised.lineno or 0, (raised.text or "").strip()[:200]]]
    return {"value": {"output": printed.text(), "error": error}}


def silence() -> None:
    """Nothing below Python's own streams may print: native code writes to nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
