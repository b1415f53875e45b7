"""The zygote: every student's process is forked from this process.

It has imported torch, NumPy, IPython and matplotlib, and nothing that knows an answer. It starts no thread, because a
fork copies only the thread that calls it. For each submission it forks a supervisor. The supervisor forks the student's
process as the first process of a new process namespace: when it ends, the kernel ends everything it started.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
from typing import Any

import torch

from . import cells, sandbox, wire
from .perform import Performer
from .sandbox import kernel
from .trap import Trap

Order = dict[str, Any]  # the limits, the device, and the layers to leave out

LARGE_CLASS = 12  # after this many forks it is worth making the next ones cheaper


def main(settings: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=settings["control"])
    proc = os.open("/proc", os.O_PATH | os.O_CLOEXEC)
    torch.set_num_threads(1)
    shell = cells.new_shell()
    _warm_up()
    if (threads := len(os.listdir("/proc/self/task"))) != 1 or threading.active_count() != 1:
        raise RuntimeError(f"the zygote has {threads} threads and cannot be forked safely")
    view = sandbox.View(
        settings["readable"], settings["hidden"], settings["spare"], frozenset(settings.get("without", ()))
    )
    wall = sandbox.wall(view)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors are reaped by the kernel
    control.sendall(b"R")
    forked = 0
    while True:
        order, descriptors, _, _ = socket.recv_fds(control, 65536, 2)
        if not order:
            return
        if os.fork() == 0:
            control.close()
            wanted = json.loads(order)
            _supervise(wanted, descriptors, wall.leaving_out(wanted["without"]), proc, shell)
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        forked += 1
        if forked == LARGE_CLASS:
            with os.fdopen(os.open("self/maps", os.O_RDONLY, dir_fd=proc)) as maps:
                kernel.gather_pages(maps.read())


def _warm_up() -> None:
    """Run what every answer runs, so that its start-up cost is paid once, before the forks."""
    x = torch.ones(2, 3, 3)
    performer = Performer({"f": lambda x, mask: torch.softmax((x @ x.mT).masked_fill(~mask, 0.0), -1) @ x})
    call = {"do": "call", "target": "f", "args": (x, x > 0), "wrt": [0], "cotangents": [x]}
    for count in (False, True):
        performer.reply(call | {"count": count})
    trap = Trap(stays=True)
    for names in (("scaled_dot_product_attention",), ()):
        trap.set(names)


def _supervise(order: Order, descriptors: list[int], wall: sandbox.Wall, proc: int, shell: cells.Shell) -> None:
    """Start the student's process, end it on request, and report how it ended. No student code runs here."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection, status = (socket.socket(fileno=descriptor) for descriptor in descriptors)
    missing: dict[str, str] = {}
    scratch = sandbox.SCRATCH
    if not wall.root_is_private:
        scratch = os.path.join(wall.view.spare, str(os.getpid()))
        os.mkdir(scratch, 0o700)
    try:
        if "pid" in wall.view.without:
            raise OSError(sandbox.LEFT_OUT)
        kernel.unshare(kernel.CLONE_NEWPID)
    except OSError as refused:
        missing["pid"] = str(refused)
    student = os.fork()
    if student == 0:
        status.close()
        _serve_student(order, connection, wall, proc, shell, scratch, missing)
        os._exit(0)
    connection.close()
    _watch(student, status, proc)
    if not wall.root_is_private:
        sandbox.clear(scratch)


def _watch(student: int, status: socket.socket, proc: int) -> None:
    """Report the memory of the student's process on request; kill it when the examiner closes the connection."""
    alive = os.pidfd_open(student)
    waiting = select.poll()
    waiting.register(alive, select.POLLIN)
    waiting.register(status, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if alive in ready:
            break
        order = status.recv(1)
        if order not in (b"M", b"R"):
            os.kill(student, signal.SIGKILL)
            break
        if order == b"R":
            _forget_peak(student, proc)
        status.sendall(json.dumps(_peak(student, proc)).encode() + b"\n")
    _, ended, usage = os.wait4(student, 0)
    report = {"exit": os.waitstatus_to_exitcode(ended), "cpu_seconds": usage.ru_utime + usage.ru_stime}
    with contextlib.suppress(OSError):  # the examiner may have gone
        status.sendall(json.dumps(report).encode() + b"\n")


def _forget_peak(student: int, proc: int) -> None:
    """Reset the kernel's record of the peak. Otherwise an early peak, made on purpose, would hide a later one."""
    with os.fdopen(os.open(f"{student}/clear_refs", os.O_WRONLY, dir_fd=proc), "w") as file:
        file.write("5")


def _peak(student: int, proc: int) -> dict[str, int]:
    with os.fdopen(os.open(f"{student}/status", os.O_RDONLY, dir_fd=proc)) as file:
        fields = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
    return {name: int(fields.get(name, "0 kB").split()[0]) for name in ("VmHWM", "VmRSS")}


def _serve_student(
    order: Order,
    connection: socket.socket,
    wall: sandbox.Wall,
    proc: int,
    shell: cells.Shell,
    scratch: str,
    missing: dict[str, str],
) -> None:
    """Enter the sandbox, then run cells and calls until the connection is closed."""
    os.setsid()
    missing |= sandbox.enter(wall, order["limits"], proc, scratch, signal.SIGKILL)
    cells.silence()
    keep = connection.fileno()
    os.closerange(3, keep)
    os.closerange(keep + 1, 65536)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    performer = Performer(shell.user_ns, order["device"], Trap(stays=True) if order["device"] == "cpu" else None)
    output_limit = int(order["limits"]["output_kb"] * 1024)
    sys.argv = [""]
    wire.send(connection, {"missing": missing})
    while True:
        try:
            request = wire.receive(connection, device=order["device"])
        except EOFError:
            return
        connection.settimeout(None)
        if request["do"] == "cell":
            wire.send(connection, cells.run(shell, request["source"], output_limit, request.get("name")))
        else:
            connection.sendall(performer.reply(request))
