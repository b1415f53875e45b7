"""A crew of processes on this machine, each with a pipe of its own.

A worker that dies costs its task another try, and nobody else anything. The crew dies with its master, however the master
dies. A worker is forked from the master, so it has imported everything and shares the master's zygote; other devices
than the processor do not survive a fork, so there a worker starts anew.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait

import torch

from .student import kernel
from .told import Unfinished
from .zygote import shared

TRIES = 3


class Lost:
    """Given in place of a value when the worker died at every try."""

    tries = TRIES


def dying() -> Unfinished:
    return Unfinished(
        "the worker processes die as soon as they start; is there memory left? The marks given so far are kept",
        "工作进程一启动就终止；内存是否不足？已给出的分数都已保存",
    )


class Workers:
    """Runs functions on tasks, `jobs` at a time."""

    def __init__(self, jobs: int, device: str):
        self.jobs, self.device = jobs, device
        self.context = multiprocessing.get_context("fork" if device == "cpu" else "spawn")
        self.idle: list[Connection] = []
        self.processes: dict[Connection, multiprocessing.Process] = {}

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *failure) -> None:
        for pipe in list(self.processes):
            self._dismiss(pipe)

    def map(self, function: Callable, tasks: Iterable, meanwhile: Callable[[], None] = lambda: None) -> Iterator[tuple]:
        """Each task with what the function made of it, in the order in which they are done. At most `jobs` are in hand.

        `meanwhile` is done here, once, while the workers do the first of them.
        """
        waiting, busy, tries = iter(tasks), {}, {}
        more = self._give(function, waiting, busy)
        meanwhile()
        while busy:
            for pipe in wait(list(busy)):
                task = busy.pop(pipe)
                try:
                    value, failure = pipe.recv()
                except (EOFError, OSError):
                    self._dismiss(pipe)
                    tries[id(task)] = tries.get(id(task), 1) + 1
                    if tries[id(task)] <= TRIES:
                        busy[self._send(function, task)] = task
                        continue
                    value, failure = Lost(), None
                else:
                    self.idle.append(pipe)
                if failure is not None:
                    raise failure
                if more:
                    more = self._give(function, waiting, busy)
                tries.pop(id(task), None)
                yield task, value

    def _give(self, function, waiting: Iterator, busy: dict) -> bool:
        """Keep every worker busy; False when no task is left."""
        while len(busy) < self.jobs:
            try:
                task = next(waiting)
            except StopIteration:
                return False
            busy[self._send(function, task)] = task
        return True

    def _send(self, function, task) -> Connection:
        for _ in range(TRIES):
            pipe = self.idle.pop() if self.idle else self._hire()
            try:
                pipe.send((function, task))
                return pipe
            except OSError:  # it died in its sleep
                self._dismiss(pipe)
        raise dying()

    def _hire(self) -> Connection:
        if self.context.get_start_method() == "fork":
            shared(self.device).wait_until_ready()  # one for all of them, and only one can hear it say so
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
        process.start()
        theirs.close()
        self.processes[ours] = process
        return ours

    def _dismiss(self, pipe: Connection) -> None:
        process = self.processes.pop(pipe)
        process.kill()
        process.join()
        process.close()
        pipe.close()


def _serve(pipe: Connection, master: int) -> None:
    """A worker's whole life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the master, who ends us
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != master:
        return
    torch.set_num_threads(1)
    while True:
        try:
            function, task = pipe.recv()
        except EOFError:
            return
        try:
            answer = function(task), None
        except Exception as failure:
            answer = None, failure
        pipe.send(answer)
