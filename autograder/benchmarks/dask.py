"""Grade the same class on a Dask cluster of this machine with one worker process, then with two."""

import contextlib
import importlib.util
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from autograder.course import course_root

from . import masks_class
from .timing import Numbers, grade, timed

SCHEDULER = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
WORKER = [sys.executable, "-m", "distributed.cli.dask_worker"]


def dask(console: Console, submissions: int) -> Numbers:
    """A ratio above 1 means that the second worker helps. The scheduler and the students need processor time too."""
    if importlib.util.find_spec("distributed") is None:
        return {"dask": "not measured: the package distributed is not installed"}
    with tempfile.TemporaryDirectory(prefix="autograder-bench-") as folder:
        masks_class.right_and_wrong(Path(folder) / "submitted", submissions)
        seconds = {}
        for workers in (1, 2):
            console.print(f"{submissions} submissions, workers: {workers} …")
            with _cluster(workers, Path(folder)) as address:
                seconds[workers] = grade(Path(folder), "--dask", address).seconds
    return {
        "submissions": submissions,
        "one_worker_seconds_each": seconds[1] / submissions,
        "two_workers_seconds_each": seconds[2] / submissions,
        "times_faster_with_two": seconds[1] / seconds[2],
    }


@contextlib.contextmanager
def _cluster(workers: int, folder: Path) -> Iterator[str]:
    """Start a scheduler and its workers, and end them after the block. Yields the address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    scheduler = [*SCHEDULER, "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    worker = [*WORKER, address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
    silent = subprocess.DEVNULL
    with contextlib.ExitStack() as running:
        for command in [scheduler, *[worker] * workers]:
            process = subprocess.Popen(command, stdout=silent, stderr=silent, cwd=course_root())
            running.callback(process.wait)
            running.callback(process.terminate)
        timed(
            ["-c", f"import distributed; distributed.Client({address!r}, timeout=120).wait_for_workers({workers})"],
            folder,
        )
        yield address
