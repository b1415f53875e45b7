"""Mutated messages from a student's process never crash the examiner and never earn marks."""

import contextlib
import random
import socket
import time
from functools import cache

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.catalogue import find
from autograder.exam.answers import Raised, checked
from autograder.exam.examiner import examination
from autograder.exam.proxy import Local, Student
from autograder.isolation.process import StudentProcess
from autograder.student import wire
from autograder.verdicts import Broken, Verdict
from fuzz import seeds
from fuzz.mutations import mutated_frame

EXAMINED, DELIVERED, ANY_FORM = 2_000, 16_000, 300  # with the notebooks more than 20,000 cases
FUZZED = ("01", "05", "06", "09")  # functions, gradients, generators, modules
LIMITS = find("06").limits
PATIENCE = 20


class Liar:
    """A student's process with the functions of `namespace`, of whose answers one is mutated on the way."""

    device = "cpu"

    def __init__(self, namespace: dict, chance: random.Random):
        self.performer = Local(namespace).performer
        self.chance, self.lie_at, self.asked = chance, chance.choice((0, 0, 0, 1, 2)), 0

    def ask(self, request: dict) -> dict:
        frame = self.performer.reply(request)
        if self.asked == self.lie_at:
            frame = mutated_frame(frame, self.chance)
        self.asked += 1
        return delivered(frame, request)

    def memory(self, forget_peak: bool = False) -> dict:
        return {}


def delivered(frame: bytes, request: dict):
    """What the trusted side makes of these bytes, after which the connection is closed."""
    (ours, theirs), (status, supervisor) = socket.socketpair(), socket.socketpair()
    supervisor.close()
    with ours, theirs, status:
        process = StudentProcess.__new__(StudentProcess)
        process.connection, process.status, process.limits = ours, status, LIMITS
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, len(frame) + 2**16)
        theirs.sendall(frame)
        theirs.shutdown(socket.SHUT_WR)
        return process.ask(request, time.monotonic() + PATIENCE)


@cache
def promises() -> list[tuple]:
    """Every promise of the fuzzed exercises, without those about cost, which are slow."""
    exercises = [find(number) for number in FUZZED]
    return [(e, name) for e in exercises for name in examination(e).tests if "grow" not in name]


def worthless(*args, **kwargs):
    return torch.zeros(1)


def examined(seed: str) -> str | None:
    """Examine a right or a worthless student with one mutated answer; what is wrong with the outcome, if anything."""
    chance = random.Random(seed)
    exercise, test = chance.choice(promises())
    right = chance.random() < 0.5
    reference = vars(examination(exercise).reference)
    liar = Liar(dict(reference) if right else dict.fromkeys((p.name for p in exercise.parts), worthless), chance)
    broken = examination(exercise).outcome(test, Student(liar), "salt").broken
    if broken is not None:
        return f"{test}: {broken}" if broken.verdict is Verdict.GRADER_ERROR else None
    return None if right else f"{test}: gives a mark for a worthless answer"


@cache
def honest_answers() -> list[tuple[dict, bytes]]:
    """Answers of every kind that a student's process sends, each with its request."""
    x = torch.arange(6.0).reshape(2, 3)
    performer = Local({"f": lambda x: (x, [x > 0, 1.5, "words"], {"a": None}), "g": lambda x: 1 / 0}).performer
    call = {"do": "call", "target": "f", "args": [x], "count": True}
    requests = [call, call | {"target": "g"}, call | {"wrt": [0], "cotangents": [x]}, {"do": "defined", "names": ["f"]}]
    cell = {"do": "cell", "source": ""}, wire.encode({"value": {"output": "printed", "error": None}})
    return [*((request, performer.reply(request)) for request in requests), cell]


def received(seed: str) -> str | None:
    """Deliver one mutated message; what is wrong with the result, if anything."""
    chance = random.Random(seed)
    request, honest = chance.choice(honest_answers())
    frame = mutated_frame(honest, chance)
    with contextlib.suppress(Broken):
        answer = checked(delivered(frame, request), request)
        if "error" in answer:
            Raised("f", answer["error"])
        str(answer).encode()  # it can be written to a file
    return None


def test_an_examination_with_a_mutated_answer_gives_no_marks_and_no_crash():
    found = seeds.faults("examined", examined, EXAMINED)
    assert not found, seeds.report("examined", found, "fuzz.test_messages", examined)


def test_a_mutated_message_is_accepted_or_refused():
    found = seeds.faults("received", received, DELIVERED)
    assert not found, seeds.report("received", found, "fuzz.test_messages", received)


FIELDS = (
    "value", "error", "kind", "kinds", "text", "lines", "counts", "operators", "intact", "flops", "changed",
    "gradients", "parameter_gradients", "stirred",
)  # fmt: skip
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
trees = st.recursive(
    leaves, lambda t: st.lists(t, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), t, max_size=5), max_leaves=12
)
many = settings(
    max_examples=ANY_FORM, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@many
@given(trees, st.sampled_from(["call", "cell"]))
def test_an_answer_of_any_form_is_accepted_or_refused(tree, do):
    with contextlib.suppress(Broken):
        answer = checked(tree, {"do": do})
        if "error" in answer:
            assert isinstance(Raised("f", answer["error"]), Broken)


@many
@given(st.binary(max_size=64), st.binary(max_size=64))
def test_any_bytes_are_a_message_or_a_wire_error(text, blob):
    with contextlib.suppress(wire.WireError):
        wire.decode(text, blob)
