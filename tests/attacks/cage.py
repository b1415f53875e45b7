"""Run a command on hostile code where it can harm nothing: with its own mounts, processes and network, and strict limits.

This is for graders that have no sandbox. It needs root, and gives it up before the command starts.
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
PUBLIC_FOLDERS = {"/tmp": "512m", "/var/tmp": "64m", "/dev/shm": "64m", "/run": "16m", "/mnt": "512m"}
NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS


def caged(
    prepare: Callable, judge: Callable, command: list[str], environment: dict, seconds: float, make_reachable
) -> dict:
    """Start `command` as nobody in a cage. `prepare()` fills the cage first, `judge(status)` inspects it afterwards."""
    with tempfile.TemporaryFile() as report:
        outer = os.fork()
        if outer == 0:
            _never_return(lambda: _first_inside(prepare, judge, command, environment, seconds, make_reachable, report))
        os.waitpid(outer, 0)
        report.seek(0)
        return json.loads(report.read() or "{}")


def _first_inside(prepare, judge, command, environment, seconds, make_reachable, report) -> None:
    """Start the first process of the cage. It dies with us, and everything in the cage dies with it."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    make_reachable()
    kernel.unshare(NAMESPACES)
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    for place, size in PUBLIC_FOLDERS.items():
        if os.path.isdir(place):
            kernel.mount("tmpfs", place, "tmpfs", kernel.MS_NOSUID, f"size={size},nr_inodes=20000,mode=1777")
    kernel.mount("proc", "/proc", "proc")
    _raise_loopback()
    prepare()
    status = _as_nobody(command, environment, seconds)
    report.write(json.dumps(judge(status) | {"processes": _others(), "status": status}).encode())
    report.flush()


def _as_nobody(command, environment, seconds) -> int | None:
    """The exit status; None when it had to be stopped."""
    child = os.fork()
    if child == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # a log file could reach the size limit, which would look like a crash of the grader
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
            time.sleep(1)  # now everything that ends with it has ended
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            return os.waitstatus_to_exitcode(ended)
        if pid == 0:
            time.sleep(0.05)
    return None


def _others() -> list[str]:
    """What still runs in the cage besides this process."""
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
