"""The doctor proves each layer by an attempted escape, and says what is missing and how to get it."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import ordinary_user
import pytest
from rich.console import Console

from autograder.checks import doctor
from autograder.checks.layers import (
    ESCAPES,
    HOLDS,
    MISSING,
    MORE_SECONDS,
    SECONDS,
    UNPROVEN,
    Finding,
    Laboratory,
    prove,
)
from autograder.isolation import guarantees as trust
from autograder.isolation.process import too_slow
from autograder.isolation.zygote import ZygoteError
from autograder.student import sandbox
from autograder.student.sandbox import kernel, landlock

LANGUAGES = ("en", "zh")
OF_THE_MACHINE = ("mount", "landlock", "network", "pid", "ipc", "user", "capabilities", "seccomp")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is made of Linux's means")


def possible(layer: str) -> bool:
    """Whether this machine has what a layer is made of, found out without the sandbox."""
    if layer in ("mount", "network", "pid", "ipc"):
        flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC
        if os.geteuid() != 0:
            flags |= kernel.CLONE_NEWUSER
        program = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare({flags}) != 0)"
        return subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    if layer == "landlock":
        with contextlib.suppress(OSError):
            return landlock.version() > 0
        return False
    if layer == "capabilities":  # without a user namespace an ordinary user has none to give up
        return os.geteuid() == 0 or possible("mount")
    return layer != "user" or possible("mount")


@pytest.fixture(scope="module")
def laboratory():
    with Laboratory() as laboratory:
        yield laboratory


def examined(lang: str) -> tuple[int, str]:
    """The doctor's exit status and what it said."""
    paper = io.StringIO()
    return doctor.examine_machine(Console(file=paper, highlight=False, soft_wrap=True), lang), paper.getvalue()


def with_findings(monkeypatch, *exceptions: Finding) -> None:
    """The doctor finds that everything holds, but for these."""
    found = {finding.layer: finding for finding in exceptions}
    monkeypatch.setattr(doctor, "Laboratory", contextlib.nullcontext)
    monkeypatch.setattr(doctor, "prove", lambda _, layer: found.get(layer, Finding(layer, HOLDS, (), ("read",))))


@linux
def test_every_layer_this_machine_can_have_is_proven_to_hold(laboratory, monkeypatch):
    """As the user who runs these tests: often root."""
    found = {}
    monkeypatch.setattr(doctor, "Laboratory", lambda: contextlib.nullcontext(laboratory))
    monkeypatch.setattr(doctor, "prove", lambda lab, layer: found.setdefault(layer, prove(lab, layer)))
    status, said = examined("en")
    expected = {layer for layer in ESCAPES if possible(layer)}
    assert {layer for layer, finding in found.items() if finding.status == HOLDS} >= expected, said
    assert status == 0
    assert "Strangers' code may be graded on this machine." in said
    if "memory" in expected:
        assert set(found["limits"].otherwise) == {"memory", "file", "threads", "output", "processor"}
        assert set(found["memory"].otherwise) == {"modules", "imports", "folders", "files", "objects", "memory"}


@linux
@pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as an ordinary user already")
@pytest.mark.skipif(not all(map(possible, OF_THE_MACHINE)), reason="this machine lacks a layer")
def test_every_layer_holds_for_an_ordinary_user_too():
    done = ordinary_user.run(sys.executable, "-m", "autograder", "doctor", "--lang", "zh")
    lines = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(tuple(f"{v['zh'][0]}：" for v in doctor.LAYERS.values()))
    ]
    assert len(lines) == len(ESCAPES)
    assert all("：有效（" in line for line in lines), done.stdout
    assert "普通用户" in done.stdout.splitlines()[0]
    assert (done.returncode, done.stderr) == (0, "")


@linux
@pytest.mark.parametrize("layer", OF_THE_MACHINE)
def test_a_layer_left_out_is_found_missing_by_the_escape_itself(laboratory, layer):
    finding = prove(laboratory, layer, left_out=(layer,))
    if layer == "user" and os.geteuid() != 0:
        pytest.skip("there is no root to remain")
    assert (finding.status, finding.reason) == (MISSING, sandbox.LEFT_OUT)
    assert finding.through or not possible(layer)


@linux
def test_an_escape_that_fails_anyway_proves_nothing(laboratory, monkeypatch):
    monkeypatch.setitem(ESCAPES, "ipc", type(ESCAPES["ipc"])(lambda bench: set()))
    assert prove(laboratory, "ipc").status == UNPROVEN


@linux
def test_an_escape_that_cannot_be_tried_proves_nothing(laboratory, monkeypatch):
    def stumble(bench):
        raise OSError("no loopback")

    monkeypatch.setitem(ESCAPES, "network", type(ESCAPES["network"])(stumble))
    finding = prove(laboratory, "network")
    assert (finding.status, finding.reason) == (UNPROVEN, "OSError: no loopback")


@linux
@pytest.mark.parametrize(("slow", "status"), [(1, HOLDS), (2, UNPROVEN)])
def test_an_answer_that_comes_late_is_waited_for_longer_once(laboratory, monkeypatch, slow, status):
    given = []

    def late(bench):
        if bench.guarded:
            given.append(bench.seconds)
            if len(given) <= slow:
                raise too_slow()
        return set() if bench.guarded else {"segment"}

    monkeypatch.setitem(ESCAPES, "ipc", type(ESCAPES["ipc"])(late))
    finding = prove(laboratory, "ipc")
    assert given == [SECONDS, MORE_SECONDS]
    assert (finding.status, finding.slow) == (status, slow == 2)
    assert ("及时" in doctor.happened(finding, "zh")) == finding.slow


@linux
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("promise", trust.PROMISES)
def test_a_promise_that_no_proven_layer_keeps_is_not_sound(monkeypatch, promise, lang):
    first, second = trust.PROMISES[promise]["layers"]
    with_findings(monkeypatch, Finding(first, MISSING, ("read",), (), "refused"), Finding(second, UNPROVEN))
    status, said = examined(lang)
    assert status == 3
    assert any(line.startswith(trust.PROMISES[promise][lang]) and {"en": "NOT KEPT", "zh": "无法保证"}[lang] in line
               for line in said.splitlines())  # fmt: skip
    assert {"en": "to get ", "zh": "补齐"}[lang] + doctor.LAYERS[first][lang][0] in said


@linux
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("layer", doctor.ALWAYS)
def test_a_promise_that_is_not_kept_is_told_with_the_reason(monkeypatch, layer, lang):
    with_findings(monkeypatch, Finding(layer, MISSING, (), (), "refused by the kernel"))
    said = examined(lang)[1].splitlines()
    (line,) = (line for line in said if line.startswith(doctor.ALWAYS[layer][lang]))
    assert {"en": "NOT KEPT", "zh": "无法保证"}[lang] in line
    assert "refused by the kernel" in line
    kept = [line for line in said if {"en": "kept by", "zh": "由以下各层保证"}[lang] in line]
    assert len(kept) == len(trust.PROMISES) + len(doctor.ALWAYS) - 1
    assert "SECURITY.md" in said[-1]


@linux
@pytest.mark.parametrize("layer", OF_THE_MACHINE)
def test_one_layer_less_is_said_but_breaks_no_promise(monkeypatch, layer):
    with_findings(monkeypatch, Finding(layer, MISSING, (), (), "refused by the kernel"))
    status, said = examined("en")
    assert status == 0
    assert "missing" in said
    assert "refused by the kernel" in said


@linux
@pytest.mark.parametrize("layer", doctor.ALWAYS)
def test_what_needs_nothing_of_the_machine_must_always_hold(monkeypatch, layer):
    with_findings(monkeypatch, Finding(layer, MISSING, ("memory",)))
    assert examined("en")[0] == 3


@linux
def test_a_machine_on_which_nothing_starts_is_said_to_be_unsound(monkeypatch):
    def fail():
        raise ZygoteError("no torch here", "这里没有 torch")

    monkeypatch.setattr(doctor, "Laboratory", fail)
    status, said = examined("en")
    assert status == 3
    assert "no torch here" in said
    assert "这里没有 torch" in examined("zh")[1]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_another_system_is_told_what_it_lacks_and_what_works(monkeypatch, lang):
    monkeypatch.setattr(sys, "platform", "darwin")
    status, said = examined(lang)
    assert status == 3
    for word in ("Linux", "Landlock", "seccomp", "autograder check"):
        assert word in said


def test_a_terminal_gets_a_table(monkeypatch):
    with_findings(monkeypatch)
    paper = io.StringIO()
    doctor.examine_machine(Console(file=paper, force_terminal=True, width=160, highlight=False), "en")
    assert "what happened" in paper.getvalue()
    assert "┃" in paper.getvalue()


def test_versions_are_compared_with_the_pins(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "darwin")
    pins = tmp_path / "requirements.txt"
    pins.write_text("# pins\nnumpy==0.0.1\n")
    monkeypatch.setattr(doctor, "REQUIREMENTS", pins)
    assert "tested with 0.0.1" in examined("en")[1]
    monkeypatch.setattr(doctor, "REQUIREMENTS", tmp_path / "absent.txt")
    assert "tested with" not in examined("en")[1]


def test_every_device_is_said_to_be_there_or_not(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    said = examined("en")[1]
    assert "cpu: present" in said
    assert "cuda: " in said
    assert "mps: " in said


def test_every_layer_and_deed_has_words_in_both_languages():
    assert set(doctor.LAYERS) == set(ESCAPES)
    for words in (*doctor.LAYERS.values(), *doctor.DEEDS.values(), *doctor.STATUS.values(), *doctor.REMEDIES.values()):
        assert set(words) == set(LANGUAGES)
    for layer in ESCAPES:
        for lang in LANGUAGES:
            assert all(doctor.remedies(layer, lang))


@linux
def test_a_refused_setting_is_named_with_its_command(monkeypatch):
    kernel_type = Path("/proc/sys/kernel/ostype").read_text().strip()
    monkeypatch.setattr(doctor, "OBSTACLES", (("kernel.ostype", kernel_type, "other"),))
    assert "sudo sysctl kernel.ostype=other" in doctor.remedies("mount", "en")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("promise", trust.PROMISES)
def test_grading_is_refused_when_a_promise_has_no_layer(promise, lang):
    missing = dict.fromkeys(trust.PROMISES[promise]["layers"], "not on this kernel")
    with pytest.raises(trust.UntrustedMachine) as refusal:
        trust.demand(missing)
    for text in (trust.PROMISES[promise][lang], "not on this kernel", "doctor", "--trust-submissions"):
        assert text in refusal.value.message[lang]


@pytest.mark.parametrize("layer", OF_THE_MACHINE)
def test_grading_goes_on_when_another_layer_keeps_the_promise(layer):
    trust.demand({layer: "not on this kernel"})
