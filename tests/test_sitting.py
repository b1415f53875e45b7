"""The time of a sitting is the time of the answers: nobody pays for a slow examiner or a slow start."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from autograder.catalogue import find
from autograder.isolation.session import Sitting
from autograder.verdicts import Broken, Verdict

MASKS = find("06_masks")
SHORT = SimpleNamespace(limits=replace(MASKS.limits, wall_seconds=0.2, call_seconds=0.15))


class Slow:
    """A process that takes its time."""

    def __init__(self, seconds: float):
        self.seconds, self.deadlines, self.missing_layers = seconds, [], {}

    def ask(self, request, deadline):
        self.deadlines.append(deadline - time.monotonic())
        time.sleep(self.seconds)
        return {"value": 1}

    def end(self):
        pass


def sitting_with(process: Slow) -> Sitting:
    return Sitting(SimpleNamespace(device="cpu", spawn=lambda limits: process), SHORT, [])


def test_what_the_examiner_takes_is_not_charged():
    process = Slow(0)
    sitting = sitting_with(process)
    time.sleep(0.3)
    sitting.ask({"do": "call", "target": "f"})
    assert process.deadlines[0] > 0.1


def test_what_the_answers_take_together_is_limited():
    sitting = sitting_with(Slow(0.12))
    sitting.ask({"do": "call", "target": "f"})
    sitting.ask({"do": "call", "target": "f"})
    with pytest.raises(Broken) as slow:
        sitting.ask({"do": "call", "target": "f"})
    assert slow.value.verdict is Verdict.TIMEOUT
