"""Run commands for the benchmarks, and measure them."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from autograder.course import course_root

Numbers = dict[str, float | str | None]  # the results of one benchmark; a text says why something was not measured


@dataclass(frozen=True)
class Run:
    seconds: float
    lines: list[float]  # when each line was printed, in seconds from the start
    peak_mb: float  # of the command or of its largest child process


def place() -> Path:
    """The folder for the files that benchmarks make."""
    folder = course_root() / "_build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def timed(command: list[str], folder: Path, python: str = sys.executable) -> Run:
    """Run `python` with these arguments in the folder. Raises RuntimeError, with what it printed, if it fails."""
    search = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", "")])
    environment = dict(os.environ, PATH=search, PYTHONUNBUFFERED="1", PYTHONPATH=str(course_root()))
    started = time.monotonic()
    printed: list[str] = []
    lines: list[float] = []
    with subprocess.Popen(
        [python, *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            printed.append(line)
            lines.append(time.monotonic() - started)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:4])} failed:\n{''.join(printed)[-2000:]}")
    return Run(time.monotonic() - started, lines, usage.ru_maxrss / 1024)


def grade(folder: Path, *options: str) -> Run:
    """Our own command on `folder/submitted`, as a user types it."""
    gradebook = f"sqlite:///{folder}/ours.db"
    command = [
        "-m",
        "autograder",
        "grade",
        "submitted",
        "--out",
        "grades",
        "--db",
        gradebook,
        "--fresh",
        "--lang",
        "en",
    ]
    return timed([*command, *options], folder)
