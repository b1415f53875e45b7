"""Examine mutants, each in a forked process of its own.

The parent has everything loaded and has examined the right answer itself, so a fork starts at the first question. It asks first
the promises that rejected most mutants before, and it stops at the first broken promise.
Stops: endless loops, and memory beyond the limit. Does not stop: hostile code. Mutants are made of our own answers.
"""

import gc
import json
import os
import resource
import selectors
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from autograder.exam.examiner import Examination
from autograder.exam.proxy import Local, Student
from autograder.intake.submission import Cell
from autograder.learner.check_files import namespace_of
from autograder.student.cells import silence
from autograder.student.sandbox import kernel
from autograder.verdicts import Verdict

from .mutant_sources import Mutant, Source
from .mutation.habits import REMEMBERING

SALTS = ("mutants", "mutants again")  # a survivor of the first is examined on the second
SECONDS = 20
MEMORY = 2 * 2**30  # bytes, beyond what the parent has
HELPERS = Cell("from autograder.checks.mutation import wrong", "helpers")  # what mutants call


@dataclass(frozen=True)
class Fate:
    """What became of a mutant. A survivor has no `killed_by`."""

    killed_by: str = ""  # the test that it fails, or another reason
    grader_error: str = ""  # the grader itself failed: a fault of the suite


class Runner:
    """Examines the mutants of one exercise."""

    def __init__(self, exam: Examination, seconds: int = SECONDS):
        self.exam, self.seconds = exam, seconds
        self.kills: Counter[str] = Counter()

    def fault_of(self, source: Source) -> str:
        """Examine a right answer without a change. Returns the promise that it breaks, or nothing."""
        parts = [part.name for part in self.exam.exercise.parts]
        fate = self._examined(list(source.cells), self._order(parts, in_order=True))
        return fate.grader_error or fate.killed_by

    def run(self, mutants: Iterable[Mutant]) -> Iterator[tuple[Mutant, Fate]]:
        """The fate of each mutant, as soon as it is known. As many run at the same time as there are cores."""
        _prepare_for_forks()
        waiting, running = iter(mutants), selectors.DefaultSelector()
        processes: set[int] = set()
        try:
            for mutant in waiting:
                self._start(mutant, running, processes)
                if len(processes) >= len(os.sched_getaffinity(0)):
                    yield from self._ended(running, processes)
            while processes:
                yield from self._ended(running, processes)
        finally:
            for process in processes:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            running.close()

    def _start(self, mutant: Mutant, running: selectors.BaseSelector, processes: set[int]) -> None:
        order = self._order(mutant.parts, in_order=mutant.mutation.operator in REMEMBERING)
        reading, writing = os.pipe()
        process = _fork()
        if process == 0:
            try:
                _limit(self.seconds)
                fate = self._examined(mutant.cells, order)
                os.write(writing, json.dumps([fate.killed_by, fate.grader_error]).encode())
            finally:
                os._exit(0)
        os.close(writing)
        processes.add(process)
        running.register(reading, selectors.EVENT_READ, (mutant, process))

    def _ended(self, running: selectors.BaseSelector, processes: set[int]) -> Iterator[tuple[Mutant, Fate]]:
        """Wait until at least one mutant has an outcome."""
        for key, _ in running.select():
            mutant, process = key.data
            running.unregister(key.fd)
            with os.fdopen(key.fd, "rb") as pipe:
                line = pipe.read()
            _, status = os.waitpid(process, 0)
            processes.remove(process)
            if line:
                fate = Fate(*json.loads(line))
            else:
                fate = Fate("timeout" if os.WTERMSIG(status) == signal.SIGALRM else "crash")
            self.kills[fate.killed_by] += 1
            yield mutant, fate

    def _order(self, parts: Iterable[str], in_order: bool) -> list[str]:
        """The tests of these parts. The ones that rejected most mutants come first, unless the order matters."""
        tests = [name for name, test in self.exam.tests.items() if test.promise.part in parts]
        return tests if in_order else sorted(tests, key=lambda name: -self.kills[name])

    def _examined(self, cells: list[Cell], tests: list[str]) -> Fate:
        """Load the cells and run these tests on both salts, until one fails."""
        for salt in SALTS:
            namespace, raised = namespace_of([HELPERS, *cells])
            if raised:
                return Fate("does not load")
            student = Student(Local(namespace))
            for test in tests:
                torch.manual_seed(0)
                if broken := self.exam.outcome(test, student, salt).broken:
                    failed = broken.verdict is Verdict.GRADER_ERROR
                    return Fate(test, str(broken) if failed else "")
        return Fate()


def _prepare_for_forks() -> None:
    """Make forks cheap, because there are thousands."""
    gc.collect()
    gc.freeze()
    with suppress(OSError):
        kernel.gather_pages(Path("/proc/self/maps").read_text())


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn if there are threads; ours only wait
        return os.fork()


def _limit(seconds: int) -> None:
    """In the new process: end after some seconds, take no more memory than allowed, and print nothing."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.alarm(seconds)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    sys.stdout.flush()
    silence()
