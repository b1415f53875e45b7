"""A real Dask cluster gives the same marks as a local run, even when a worker dies during the run."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.catalogue import find
from autograder.checks.samples import hand_in, solution, with_answer, with_mistake
from autograder.errors import Unfinished
from autograder.grading import dask
from autograder.grading.dask import Cluster
from autograder.grading.run import Options, run
from autograder.grading.task import Lost
from autograder.mistakes import mistakes_of
from autograder.results import SubmissionReport

pytest.importorskip("distributed", reason="needs the package distributed")

ROOT = Path(__file__).parents[1]
MASKS = find("06_masks")
PATIENCE = 120  # seconds a test waits for something that must happen before it gives up


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def program(folder: Path, *arguments: str) -> Iterator[subprocess.Popen]:
    """A Dask command in its own process group, which is killed as a whole at the end."""
    here = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), "OMP_NUM_THREADS": "1"}
    with open(folder / f"{arguments[0]}.log", "ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "dask", *arguments], cwd=folder, env=os.environ | here,
                                   stdout=log, stderr=log, start_new_session=True)  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def cluster(tmp_path) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """A scheduler and two workers, each in its own process."""
    address = f"tcp://127.0.0.1:{free_port()}"
    worker = ("worker", address, "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path / "scratch"))
    with contextlib.ExitStack() as stack:
        stack.enter_context(program(tmp_path, "scheduler", "--host", address, "--no-dashboard"))
        workers = [stack.enter_context(program(tmp_path, *worker, "--nthreads", n)) for n in ("1", "2")]
        with Cluster(address) as ready:
            ready.client.wait_for_workers(2, timeout=PATIENCE)
        yield address, workers


def test_a_worker_lost_during_the_run_costs_no_marks(tmp_path, cluster, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_SALT", "the same")
    known = mistakes_of(MASKS.module)
    for i in range(6):
        hand_in(tmp_path / "in", f"wrong{i}", MASKS, with_mistake(MASKS, known[2 * i]))
        hand_in(tmp_path / "in", f"right{i}", MASKS, solution(MASKS))
    hand_in(tmp_path / "in", "broken", MASKS, with_answer(solution(MASKS), "causal_mask", "def causal_mask(:"))
    hand_in(tmp_path / "in", "damaged", MASKS, solution(MASKS)).write_text("{")
    (tmp_path / "in" / "nothing" / MASKS.name).mkdir(parents=True)
    address, workers = cluster
    seen = []

    def lose_a_worker(report, total):
        seen.append(report)
        if len(seen) == 2:
            os.killpg(workers[0].pid, signal.SIGKILL)

    far = run(options(tmp_path / "far", tmp_path / "in", dask=address), lose_a_worker)
    near = run(options(tmp_path / "near", tmp_path / "in", jobs=2))
    assert len(seen) == len(far) == 15
    assert [without_seconds(report) for report in far] == [without_seconds(report) for report in near]
    assert grades(tmp_path / "far") == grades(tmp_path / "near")
    assert notebooks(tmp_path / "far") == notebooks(tmp_path / "near")
    assert workers[0].wait(PATIENCE) == -signal.SIGKILL


def options(folder: Path, source: Path, **others) -> Options:
    return Options(source, folder / "out", db=f"sqlite:///{folder.parent}/{folder.name}.db",
                   autograded=folder / "autograded", **others)  # fmt: skip


def without_seconds(report: SubmissionReport) -> SubmissionReport:
    return replace(report, seconds=0.0)


def grades(folder: Path) -> bytes:
    assert json.loads((folder / "out" / "results.json").read_text(encoding="utf-8"))["schema"] == 1
    return (folder / "out" / "grades.csv").read_bytes()


def notebooks(folder: Path) -> dict:
    return {path.parts[-3]: path.read_bytes() for path in (folder / "autograded").rglob("*.ipynb")}


class Deadly:
    """A task that kills every worker."""

    key = "deadly"


def die(task) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_kills_every_worker_is_given_up(tmp_path):
    """A nanny replaces a worker that dies, as on any real cluster."""
    address = f"tcp://127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as stack:
        stack.enter_context(program(tmp_path, "scheduler", "--host", address, "--no-dashboard"))
        stack.enter_context(
            program(tmp_path, "worker", address, "--no-dashboard", "--nworkers", "2", "--nthreads", "1")
        )
        with Cluster(address) as ready:
            ready.client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
            [(_, value)] = ready.map(die, [Deadly()])
    assert isinstance(value, Lost)


@pytest.mark.parametrize(("lang", "said"), [("en", "no Dask scheduler answers"), ("zh", "没有 Dask 调度器应答")])
def test_an_unreachable_scheduler_is_reported(monkeypatch, lang, said):
    monkeypatch.setattr(dask, "REACH_SECONDS", 1)
    with pytest.raises(Unfinished) as refused:
        Cluster(f"tcp://127.0.0.1:{free_port()}")
    assert said in refused.value.message[lang]


def test_a_cluster_without_workers_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(dask, "NOBODY_SECONDS", 1)
    address = f"tcp://127.0.0.1:{free_port()}"
    with program(tmp_path, "scheduler", "--host", address, "--no-dashboard"), Cluster(address) as empty:
        started = time.monotonic()
        with pytest.raises(Unfinished, match="no worker"):
            list(empty.map(die, [Deadly()]))
        assert time.monotonic() >= started + 1
