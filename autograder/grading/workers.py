"""A crew of processes on this machine, each with its own pipe.

When a worker dies, its task is tried again; other tasks are not affected. When the master dies, the kernel kills the
workers. A worker is forked from the master, so everything is imported and it shares the master's zygote. GPUs cannot be
used after a fork, so for them a worker is a new interpreter.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from autograder.errors import Unfinished
from autograder.isolation.zygote import shared
from autograder.student.sandbox import kernel

from .task import TRIES, Lost, T

Pipe = Connection


def dying() -> Unfinished:
    return Unfinished(
        "the worker processes die as soon as they start; is there memory left? The marks given so far are kept",
        "工作进程一启动就终止；内存是否不足？已给出的分数都已保存",
    )


class Workers:
    """Runs functions on tasks, `jobs` at a time."""

    def __init__(self, jobs: int, device: str):
        self.jobs, self.device = jobs, device
        self.context: Any = multiprocessing.get_context("fork" if device == "cpu" else "spawn")
        self.idle: list[Pipe] = []
        self.processes: dict[Pipe, Any] = {}

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *failure: object) -> None:
        for pipe in list(self.processes):
            self._dismiss(pipe)

    def map(
        self, function: Callable[[T], Any], tasks: Iterable[T], meanwhile: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[T, Any]]:
        """See `Crew`. At most `jobs` tasks run at once."""
        waiting = iter(tasks)
        busy: dict[Pipe, T] = {}
        tries: dict[int, int] = {}
        more = self._give(function, waiting, busy)
        meanwhile()
        while busy:
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                task = busy.pop(pipe)
                try:
                    value, failure = pipe.recv()
                except (EOFError, OSError):
                    self._dismiss(pipe)
                    tries[id(task)] = tries.get(id(task), 0) + 1
                    if tries[id(task)] < TRIES:
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

    def _give(self, function: Callable[[T], Any], waiting: Iterator[T], busy: dict[Pipe, T]) -> bool:
        """Give every worker a task; False when no task is left."""
        while len(busy) < self.jobs:
            try:
                task = next(waiting)
            except StopIteration:
                return False
            busy[self._send(function, task)] = task
        return True

    def _send(self, function: Callable[[T], Any], task: T) -> Pipe:
        for _ in range(TRIES):
            pipe = self.idle.pop() if self.idle else self._hire()
            try:
                pipe.send((function, task))
                return pipe
            except OSError:  # the worker died while it was idle
                self._dismiss(pipe)
        raise dying()

    def _hire(self) -> Pipe:
        if self.context.get_start_method() == "fork":
            shared(self.device).wait_until_ready()  # the ready byte is sent once, so wait for it before forking
        ours: Pipe
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
        process.start()
        theirs.close()
        self.processes[ours] = process
        return ours

    def _dismiss(self, pipe: Pipe) -> None:
        process = self.processes.pop(pipe)
        process.kill()
        process.join()
        process.close()
        pipe.close()


def _serve(pipe: Pipe, master: int) -> None:
    """The main loop of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the master handles Ctrl-C and ends the workers
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
            answer: tuple[Any, Exception | None] = function(task), None
        except Exception as failure:
            answer = None, failure
        pipe.send(answer)
