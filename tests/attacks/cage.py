"""Run a command on hostile code where it can hurt nothing: its own mounts, processes, network and memory, and little of each.

For what has no sandbox of its own. Needs root, and gives it up before the command starts.
"""

import contextlib
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from autograder.student.sandbox import kernel

NOBODY = 65534
LIMITS = {
    resource.RLIMIT_AS: 6 * 2**30,
    resource.RLIMIT_FSIZE: 100 * 2**20,
    resource.RLIMIT_NPROC: 400,
    resource.RLIMIT_CPU: 120,
    resource.RLIMIT_CORE: 0,
}
EVERYBODYS = {"/tmp": "512m", "/var/tmp": "64m", "/dev/shm": "64m", "/run": "16m", "/mnt": "512m"}
NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS


def caged(
    prepare: Callable, judge: Callable, command: list[str], environment: dict, seconds: float, open_the_way
) -> dict:
    """Start `command` as nobody in a cage. `prepare()` fills it first, `judge(status)` looks around afterwards."""
    with tempfile.TemporaryFile() as paper:
        outer = os.fork()
        if outer == 0:
            _never_return(lambda: _first_inside(prepare, judge, command, environment, seconds, open_the_way, paper))
        os.waitpid(outer, 0)
        paper.seek(0)
        return json.loads(paper.read() or "{}")


def _first_inside(prepare, judge, command, environment, seconds, open_the_way, paper) -> None:
    """The parent of the cage's first process: it dies with us, and everything in the cage with it."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    open_the_way()
    kernel.unshare(NAMESPACES)
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    for place, size in EVERYBODYS.items():
        if os.path.isdir(place):
            kernel.mount("tmpfs", place, "tmpfs", kernel.MS_NOSUID, f"size={size},nr_inodes=20000,mode=1777")
    kernel.mount("proc", "/proc", "proc")
    _raise_loopback()
    prepare()
    status = _as_nobody(command, environment, seconds)
    paper.write(json.dumps(judge(status) | {"processes": _others(), "status": status}).encode())
    paper.flush()


def _as_nobody(command, environment, seconds) -> int | None:
    """The exit status; None when it had to be stopped."""
    child = os.fork()
    if child == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # a log would have a limit, and reaching it would look like a death of the grader
            os.dup2(null, stream)
        for kind, bound in LIMITS.items():
            resource.setrlimit(kind, (bound, bound))
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        os.chdir("/mnt/course")
        os.execve(command[0], command, environment)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        pid, ended = os.waitpid(-1, os.WNOHANG)  # orphans too: this is the cage's first process
        if pid == child:
            time.sleep(1)  # what ends with it has ended now
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            return os.waitstatus_to_exitcode(ended)
        if pid == 0:
            time.sleep(0.05)
    return None


def _others() -> list[str]:
    """What still runs in the cage beside this process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            before, _, after = path.read_text().rpartition(")")
            if int(path.parent.name) != os.getpid() and after.split()[0] != "Z":
                found.append(before.partition("(")[2])
    return found


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1 | 64))  # SIOCSIFFLAGS: up and running


def _never_return(do: Callable) -> None:
    status = 1
    try:
        do()
        status = 0
    except BaseException as failed:
        sys.stderr.write(f"cage: {type(failed).__name__}: {failed}\n")
    finally:
        os._exit(status)
