"""A session limits the time of the answers, and refuses to run code in a process that lacks a layer of the sandbox."""

import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from autograder.catalogue import find
from autograder.checks.samples import hand_in, solution
from autograder.grading.grade import Conditions, grade_file
from autograder.grading.task import missing_layers
from autograder.isolation.guarantees import MissingLayers
from autograder.isolation.process import StudentProcess
from autograder.isolation.session import StudentSession
from autograder.verdicts import Broken, Verdict

MASKS = find("06_masks")
SHORT = replace(MASKS.limits, wall_seconds=0.2, call_seconds=0.15)
LAYER = "seccomp"
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox needs Linux")


class SlowProcess:
    """A process that needs some time for each answer, and lacks some layers of the sandbox."""

    def __init__(self, seconds: float = 0.0, missing_layers: dict[str, str] | None = None):
        self.seconds, self.missing_layers = seconds, missing_layers or {}
        self.deadlines, self.ended = [], False

    def ask(self, request, deadline):
        self.deadlines.append(deadline - time.monotonic())
        time.sleep(self.seconds)
        return {"value": 1}

    def end(self):
        self.ended = True


def session_with(monkeypatch, process: SlowProcess, may_lack=None) -> StudentSession:
    monkeypatch.setattr(StudentProcess, "spawn", lambda zygote, limits: process)
    return StudentSession(SimpleNamespace(device="cpu"), MASKS, [], may_lack, SHORT)


def test_the_examiners_time_does_not_count(monkeypatch):
    process = SlowProcess()
    session = session_with(monkeypatch, process)
    time.sleep(0.3)
    session.ask({"do": "call", "target": "f"})
    assert process.deadlines[0] > 0.1


def test_the_total_time_of_the_answers_is_limited(monkeypatch):
    session = session_with(monkeypatch, SlowProcess(0.12))
    session.ask({"do": "call", "target": "f"})
    session.ask({"do": "call", "target": "f"})
    with pytest.raises(Broken) as slow:
        session.ask({"do": "call", "target": "f"})
    assert slow.value.verdict is Verdict.TIMEOUT


def test_a_process_that_lacks_a_layer_is_ended_and_never_asked(monkeypatch):
    process = SlowProcess(missing_layers={"pid": "refused", "network": "refused too"})
    session = session_with(monkeypatch, process, may_lack={"pid"})
    with pytest.raises(MissingLayers, match="network: refused too") as missing:
        session.ask({"do": "call", "target": "f"})
    assert "pid" not in missing.value.message.en
    assert (process.ended, process.deadlines) == (True, [])


@pytest.mark.parametrize("may_lack", [None, {"pid", "network"}])
def test_a_layer_that_may_be_lacking_does_not_stop_the_session(monkeypatch, may_lack):
    process = SlowProcess(missing_layers={"pid": "refused", "network": "refused"})
    assert session_with(monkeypatch, process, may_lack).ask({"do": "call", "target": "f"}) == {"value": 1}


@pytest.fixture
def layers_of_this_machine() -> frozenset[str]:
    """The layers that this machine lacks, and so may be missing in every process."""
    lacking = frozenset(missing_layers("cpu"))
    if LAYER in lacking:
        pytest.skip(f"this machine has no {LAYER} to leave out")
    return lacking


@pytest.fixture
def requests(monkeypatch, layers_of_this_machine) -> list[dict]:
    """Every student process lacks one layer; the requests that are sent to them."""
    spawn, ask, sent = StudentProcess.spawn, StudentProcess.ask, []
    monkeypatch.setattr(StudentProcess, "spawn", lambda zygote, limits: spawn(zygote, limits, without=(LAYER,)))
    monkeypatch.setattr(
        StudentProcess, "ask", lambda self, request, ends: sent.append(request) or ask(self, request, ends)
    )
    return sent


def graded(folder, may_lack: frozenset[str] | None):
    path = hand_in(folder, "ada", MASKS, solution(MASKS))
    return grade_file("ada", MASKS.name, path, Conditions("salt", may_lack=may_lack))


@linux
def test_a_submission_is_not_run_where_an_accepted_layer_is_missing(tmp_path, requests, layers_of_this_machine):
    result = graded(tmp_path, layers_of_this_machine)
    assert (result.report.verdict, result.report.score, result.report.max_score) == (Verdict.GRADER_ERROR, 0, 20)
    assert {part.verdict for part in result.report.parts} == {Verdict.GRADER_ERROR}
    for text in (result.report.message, result.report.parts[0].message):
        assert f"\n  {LAYER}: " in text.en
        assert f"\n  {LAYER}: " in text.zh
    assert "not the student's fault" in result.report.message.en
    assert requests == []  # no cell was run
    assert result.cells == []


@linux
@pytest.mark.parametrize("trusted", [True, False], ids=["any layer may be missing", "this layer may be missing"])
def test_a_submission_is_graded_where_the_missing_layer_is_accepted(
    tmp_path, requests, layers_of_this_machine, trusted
):
    result = graded(tmp_path, None if trusted else layers_of_this_machine | {LAYER})
    assert (result.report.verdict, result.report.score) == (Verdict.PASS, 20)
    assert any(request["do"] == "cell" for request in requests)
