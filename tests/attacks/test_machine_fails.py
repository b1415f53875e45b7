"""The machine may fail at any moment: nothing is lost, nothing is left, and the marks are the same."""

import subprocess
import sys
import time

import pytest

from attacks import judged
from attacks.corpus import corpus, put_control, put_neighbour
from attacks.scene import adopting, family, staged

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is made of Linux's means")

PATIENCE = 300  # seconds until the first marks must be there, on the slowest machine
CHOSEN = [attack for attack in corpus() if attack.name in ("03_leaving/exit_in_a_cell", "14_under_the_tolerance/zeros")]


def test_a_grader_killed_half_way_goes_on_and_gives_the_same_marks():
    with staged() as scene:
        put_neighbour(scene)
        for number in range(6):
            put_control(scene, f"{number:02} control")
        for attack in CHOSEN:
            attack.put(scene, attack)
        before = family()
        with adopting():
            grader = subprocess.Popen(
                judged.command(scene), env=scene.environment(), cwd=scene.folder, stdout=subprocess.DEVNULL
            )
            killed_with = wait_for_marks(scene, 2)
            grader.kill()
            grader.wait()
            assert judged.survivors(before) == {}
        assert 2 <= killed_with < 9
        assert not (scene.out / "results.json").exists()
        for folder in scene.temporary.iterdir():
            assert folder.name.startswith("autograder-")  # nobody was left to remove it
        run = judged.run(scene, CHOSEN)
        assert run.status == 0, run.printed
        assert run.printed.count("20/20 pass") == 7
        assert run.successes == {}
        assert {run.results[attack.shown]["score"] for attack in CHOSEN} == {0}


def wait_for_marks(scene, wanted: int) -> int:
    """How many marks are in the journal when there are enough of them."""
    ends = time.monotonic() + PATIENCE
    journal = scene.out / "journal.jsonl"
    while time.monotonic() < ends:
        if journal.exists() and (lines := journal.read_bytes().count(b'"result"')) >= wanted:
            return lines
        time.sleep(0.02)
    raise AssertionError("no marks were given")
