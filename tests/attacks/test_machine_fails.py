"""The machine may fail at any time: nothing is lost, nothing is left behind, and the marks are the same."""

import subprocess
import sys
import time

import pytest

from attacks import verdicts
from attacks.corpus import corpus, put_control, put_neighbour
from attacks.target import adopting, family, new_target

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox needs Linux")

PATIENCE = 300  # seconds until the first marks must be there, on the slowest machine
CHOSEN = [attack for attack in corpus() if attack.name in ("03_leaving/exit_in_a_cell", "14_under_the_tolerance/zeros")]


def test_a_killed_grader_continues_and_gives_the_same_marks():
    with new_target() as target:
        put_neighbour(target)
        for number in range(6):
            put_control(target, f"{number:02} control")
        for attack in CHOSEN:
            attack.put(target, attack)
        before = family()
        with adopting():
            grader = subprocess.Popen(
                verdicts.command(target), env=target.environment(), cwd=target.folder, stdout=subprocess.DEVNULL
            )
            killed_with = wait_for_marks(target, 2)
            grader.kill()
            grader.wait()
            assert verdicts.survivors(before) == {}
        assert 2 <= killed_with < 9
        assert not (target.out / "results.json").exists()
        for folder in target.temporary.iterdir():
            assert folder.name.startswith("autograder-")  # the killed grader could not remove it
        run = verdicts.run(target, CHOSEN)
        assert run.status == 0, run.printed
        assert run.printed.count("20/20 pass") == 7
        assert run.successes == {}
        assert {run.results[attack.shown]["score"] for attack in CHOSEN} == {0}


def wait_for_marks(target, wanted: int) -> int:
    """Wait for this many marks in the journal; returns how many there are then."""
    ends = time.monotonic() + PATIENCE
    journal = target.out / "journal.jsonl"
    while time.monotonic() < ends:
        if journal.exists() and (lines := journal.read_bytes().count(b'"report"')) >= wanted:
            return lines
        time.sleep(0.02)
    raise AssertionError("no marks were given")
