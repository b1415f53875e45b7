"""The same class on a Dask cluster of this machine: one worker process against two."""

import contextlib
import importlib.util
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from autograder.course import course_root

from . import masks_class
from .timing import grade, timed

SCHEDULER = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
WORKER = [sys.executable, "-m", "distributed.cli.dask_worker"]


def dask(console: Console, submissions: int) -> dict:
    """Ratio above 1: the second worker helps. On two cores the scheduler and the students share them with it."""
    if importlib.util.find_spec("distributed") is None:
        return {"dask": "not measured: the package distributed is not installed"}
    with tempfile.TemporaryDirectory(prefix="autograder-bench-") as folder:
        masks_class.right_and_wrong(Path(folder) / "submitted", submissions)
        seconds = {}
        for workers in (1, 2):
            console.print(f"{submissions} submissions, {workers} worker{'s' * (workers - 1)} …")
            with _cluster(workers, Path(folder)) as address:
                seconds[workers] = grade(Path(folder), "--dask", address).seconds
    return {
        "submissions": submissions,
        "one_worker_seconds_each": seconds[1] / submissions,
        "two_workers_seconds_each": seconds[2] / submissions,
        "times_faster_with_two": seconds[1] / seconds[2],
    }


@contextlib.contextmanager
def _cluster(workers: int, folder: Path):
    """A scheduler and its workers, gone afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": course_root()}
    with contextlib.ExitStack() as running:
        commands = [[*SCHEDULER, "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]]
        commands += [
            [*WORKER, address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
        ] * workers
        for command in commands:
            process = subprocess.Popen(command, **quiet)
            running.callback(process.wait)
            running.callback(process.terminate)
        timed(
            ["-c", f"import distributed; distributed.Client({address!r}, timeout=120).wait_for_workers({workers})"],
            folder,
        )
        yield address
