"""Run the tasks on a Dask cluster that is already running.

When a worker is lost or fails, its tasks are tried again. If a submission kills every worker that tries it, the result is
a grader error, never a pass. The package `distributed` and the course must be installed here and on the cluster.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from autograder.errors import Unfinished
from autograder.isolation.guarantees import UntrustedMachine

from .task import TRIES, Lost, T, UnsoundGrader

FOR_THE_INSTRUCTOR = (Unfinished, UnsoundGrader, UntrustedMachine)  # another try would not help
AHEAD = 2  # tasks sent per thread of the cluster, so that no thread is idle and few tasks are in memory
REACH_SECONDS = 30
NOBODY_SECONDS = 60  # how long the cluster may have no worker at all


class Cluster:
    """Runs functions on tasks, as many at a time as the cluster has threads."""

    def __init__(self, address: str):
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
                f"no Dask scheduler answers at {address} ({refused}). Start one with `dask scheduler`",
                f"{address} 处没有 Dask 调度器应答（{refused}）。请用 dask scheduler 启动",
            ) from None

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *failure: object) -> None:
        self.client.close()

    def map(
        self, function: Callable[[T], Any], tasks: Iterable[T], meanwhile: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[T, Any]]:
        """See `Crew`."""
        waiting = iter(tasks)
        running: dict[Any, T] = {}
        tries: dict[int, int] = {}
        more = self._give(function, waiting, running)
        meanwhile()
        while running:
            for future in self._finished(running):
                task = running.pop(future)
                failure = future.exception()
                if isinstance(failure, FOR_THE_INSTRUCTOR):
                    raise failure
                if failure is not None:
                    tries[id(task)] = tries.get(id(task), 0) + 1
                    if tries[id(task)] < TRIES:
                        running[self._send(function, task)] = task
                        continue
                    value: Any = Lost()
                else:
                    value = future.result()
                future.release()
                more = more and self._give(function, waiting, running)
                yield task, value

    def _give(self, function: Callable[[T], Any], waiting: Iterator[T], running: dict[Any, T]) -> bool:
        while len(running) < AHEAD * max(1, sum(self.client.nthreads().values())):
            try:
                task = next(waiting)
            except StopIteration:
                return False
            running[self._send(function, task)] = task
        return True

    def _send(self, function: Callable[[T], Any], task: T) -> Any:
        return self.client.submit(function, task, pure=False)

    def _finished(self, running: dict[Any, T]) -> list[Any]:
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
                    "start a worker with `dask worker` and run the same command to go on",
                    f"集群已有 {NOBODY_SECONDS} 秒没有任何 worker。已给出的分数都已保存；用 dask worker 启动后再次运行同一命令即可继续",
                )
