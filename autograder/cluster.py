"""The same work on a Dask cluster that is already there.

A worker that is lost or fails costs its tasks another try. A submission that takes every worker with it is given up as
the grader's failure, never as a pass. Needs the package `distributed` here and on the cluster, and the course on both.
"""

from collections.abc import Callable, Iterable, Iterator

from .told import Unfinished
from .trust import UntrustedMachine
from .work import UnsoundGrader
from .workers import TRIES, Lost

FOR_THE_INSTRUCTOR = (Unfinished, UnsoundGrader, UntrustedMachine)  # another try would not help
AHEAD = 2  # tasks sent per thread of the cluster: it is never idle, and few are in memory
REACH_SECONDS = 30
NOBODY_SECONDS = 60  # how long the cluster may have no worker at all


class Cluster:
    """Runs functions on tasks, as many at a time as the cluster has threads."""

    def __init__(self, address: str, lang: str = "en"):
        try:
            import distributed
        except ImportError:
            raise Unfinished(
                "--dask needs the package distributed: pip install distributed",
                "--dask 需要 distributed 包：pip install distributed",
            ) from None
        self.distributed = distributed
        try:
            self.client = distributed.Client(address, timeout=REACH_SECONDS)
        except (OSError, ValueError, TimeoutError) as refused:
            raise Unfinished(
                f"no Dask scheduler answers at {address} ({refused}). Start one with «dask scheduler»",
                f"{address} 处没有 Dask 调度器应答（{refused}）。请用 dask scheduler 启动",
            ) from None

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *failure) -> None:
        self.client.close()

    def map(self, function: Callable, tasks: Iterable) -> Iterator[tuple]:
        """Each task with what the function made of it, in the order in which they are done."""
        waiting, running, tries = iter(tasks), {}, {}
        more = self._give(function, waiting, running)
        while running:
            for future in self._finished(running):
                task = running.pop(future)
                failure = future.exception()
                if isinstance(failure, FOR_THE_INSTRUCTOR):
                    raise failure
                if failure is not None:
                    tries[task.key] = tries.get(task.key, 0) + 1
                    if tries[task.key] < TRIES:
                        running[self._send(function, task)] = task
                        continue
                    value = Lost()
                else:
                    value = future.result()
                future.release()
                more = more and self._give(function, waiting, running)
                yield task, value

    def _give(self, function, waiting: Iterator, running: dict) -> bool:
        while len(running) < AHEAD * max(1, sum(self.client.nthreads().values())):
            try:
                task = next(waiting)
            except StopIteration:
                return False
            running[self._send(function, task)] = task
        return True

    def _send(self, function, task):
        return self.client.submit(function, task, pure=False)

    def _finished(self, running: dict) -> list:
        quiet = 0
        while True:
            try:
                done = self.distributed.wait(list(running), timeout=1, return_when="FIRST_COMPLETED").done
                return list(done)
            except TimeoutError:
                quiet = 0 if self.client.nthreads() else quiet + 1
            if quiet >= NOBODY_SECONDS:
                raise Unfinished(
                    f"the cluster has had no worker for {NOBODY_SECONDS} seconds. The marks given so far are kept; "
                    "start a worker with «dask worker» and run the same command to go on",
                    f"集群已有 {NOBODY_SECONDS} 秒没有任何 worker。已给出的分数都已保存；用 dask worker 启动后再次运行同一命令即可继续",
                )
