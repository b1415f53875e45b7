"""The doctor tests each layer by trying to escape, and says what is missing and how to get it."""

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
    Lab,
    prove,
)
from autograder.isolation import guarantees
from autograder.isolation.process import too_slow
from autograder.isolation.zygote import ZygoteError
from autograder.language import LANGUAGES
from autograder.student import sandbox
from autograder.student.sandbox import kernel, landlock

OF_THE_MACHINE = ("mount", "landlock", "network", "pid", "ipc", "user", "capabilities", "seccomp")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox needs Linux")


def possible(layer: str) -> bool:
    """Whether this machine supports a layer, tested without the sandbox."""
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
def lab():
    with Lab() as lab:
        yield lab


def examined(lang: str) -> tuple[int, str]:
    """The exit status of the doctor, and what it printed."""
    output = io.StringIO()
    return doctor.examine_machine(Console(file=output, highlight=False, soft_wrap=True), lang), output.getvalue()


def with_findings(monkeypatch, *exceptions: Finding) -> None:
    """Let the doctor find that every layer holds except these."""
    found = {finding.layer: finding for finding in exceptions}
    monkeypatch.setattr(doctor, "Lab", contextlib.nullcontext)
    monkeypatch.setattr(doctor, "prove", lambda _, layer: found.get(layer, Finding(layer, HOLDS, (), ("read",))))


@linux
def test_every_supported_layer_is_proven_to_hold(lab, monkeypatch):
    """As the user who runs these tests: often root."""
    found = {}
    monkeypatch.setattr(doctor, "Lab", lambda: contextlib.nullcontext(lab))
    monkeypatch.setattr(doctor, "prove", lambda used, layer: found.setdefault(layer, prove(used, layer)))
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
        if line.startswith(tuple(f"{words.name.zh}：" for words in doctor.LAYERS.values()))
    ]
    assert len(lines) == len(ESCAPES)
    assert all("：有效（" in line for line in lines), done.stdout
    assert "普通用户" in done.stdout.splitlines()[0]
    assert (done.returncode, done.stderr) == (0, "")


@linux
@pytest.mark.parametrize("layer", OF_THE_MACHINE)
def test_a_layer_left_out_is_detected_by_its_escape(lab, layer):
    finding = prove(lab, layer, left_out=(layer,))
    if layer == "user" and os.geteuid() != 0:
        pytest.skip("there is no root to remain")
    assert (finding.status, finding.reason) == (MISSING, sandbox.LEFT_OUT)
    assert finding.through or not possible(layer)


@linux
def test_an_escape_that_never_succeeds_proves_nothing(lab, monkeypatch):
    monkeypatch.setitem(ESCAPES, "ipc", type(ESCAPES["ipc"])(lambda trial: set()))
    assert prove(lab, "ipc").status == UNPROVEN


@linux
def test_an_escape_that_cannot_be_tried_proves_nothing(lab, monkeypatch):
    def stumble(trial):
        raise OSError("no loopback")

    monkeypatch.setitem(ESCAPES, "network", type(ESCAPES["network"])(stumble))
    finding = prove(lab, "network")
    assert (finding.status, finding.reason) == (UNPROVEN, "OSError: no loopback")


@linux
@pytest.mark.parametrize(("slow", "status"), [(1, HOLDS), (2, UNPROVEN)])
def test_a_late_answer_gets_one_longer_try(lab, monkeypatch, slow, status):
    given = []

    def late(trial):
        if trial.guarded:
            given.append(trial.seconds)
            if len(given) <= slow:
                raise too_slow()
        return set() if trial.guarded else {"segment"}

    monkeypatch.setitem(ESCAPES, "ipc", type(ESCAPES["ipc"])(late))
    finding = prove(lab, "ipc")
    assert given == [SECONDS, MORE_SECONDS]
    assert (finding.status, finding.slow) == (status, slow == 2)
    assert ("及时" in doctor.happened(finding, "zh")) == finding.slow


@linux
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("guarantee", guarantees.GUARANTEES)
def test_a_guarantee_without_a_proven_layer_fails_the_doctor(monkeypatch, guarantee, lang):
    first, second = guarantees.GUARANTEES[guarantee].layers
    with_findings(monkeypatch, Finding(first, MISSING, ("read",), (), "refused"), Finding(second, UNPROVEN))
    status, said = examined(lang)
    assert status == 3
    assert any(line.startswith(guarantees.GUARANTEES[guarantee].text[lang]) and {"en": "NOT KEPT", "zh": "无法保证"}[lang] in line
               for line in said.splitlines())  # fmt: skip
    assert {"en": "to get ", "zh": "补齐"}[lang] + doctor.LAYERS[first].name[lang] in said


@linux
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("layer", doctor.ALWAYS)
def test_a_broken_guarantee_is_shown_with_the_reason(monkeypatch, layer, lang):
    with_findings(monkeypatch, Finding(layer, MISSING, (), (), "refused by the kernel"))
    said = examined(lang)[1].splitlines()
    (line,) = (line for line in said if line.startswith(doctor.ALWAYS[layer][lang]))
    assert {"en": "NOT KEPT", "zh": "无法保证"}[lang] in line
    assert "refused by the kernel" in line
    kept = [line for line in said if {"en": "kept by", "zh": "由以下各层保证"}[lang] in line]
    assert len(kept) == len(guarantees.GUARANTEES) + len(doctor.ALWAYS) - 1
    assert "SECURITY.md" in said[-1]


@linux
@pytest.mark.parametrize("layer", OF_THE_MACHINE)
def test_one_missing_layer_is_reported_and_breaks_no_guarantee(monkeypatch, layer):
    with_findings(monkeypatch, Finding(layer, MISSING, (), (), "refused by the kernel"))
    status, said = examined("en")
    assert status == 0
    assert "missing" in said
    assert "refused by the kernel" in said


@linux
@pytest.mark.parametrize("layer", doctor.ALWAYS)
def test_layers_that_need_no_kernel_support_must_always_hold(monkeypatch, layer):
    with_findings(monkeypatch, Finding(layer, MISSING, ("memory",)))
    assert examined("en")[0] == 3


@linux
def test_a_machine_where_no_process_starts_fails_the_doctor(monkeypatch):
    def fail():
        raise ZygoteError("no torch here", "这里没有 torch")

    monkeypatch.setattr(doctor, "Lab", fail)
    status, said = examined("en")
    assert status == 3
    assert "no torch here" in said
    assert "这里没有 torch" in examined("zh")[1]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_another_system_is_told_what_is_missing_and_what_works(monkeypatch, lang):
    monkeypatch.setattr(sys, "platform", "darwin")
    status, said = examined(lang)
    assert status == 3
    for word in ("Linux", "Landlock", "seccomp", "autograder check"):
        assert word in said


def test_a_terminal_gets_a_table(monkeypatch):
    with_findings(monkeypatch)
    output = io.StringIO()
    doctor.examine_machine(Console(file=output, force_terminal=True, width=160, highlight=False), "en")
    assert "what happened" in output.getvalue()
    assert "┃" in output.getvalue()


def test_versions_are_compared_with_the_pins(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "darwin")
    pins = tmp_path / "requirements.txt"
    pins.write_text("# pins\nnumpy==0.0.1\n")
    monkeypatch.setattr(doctor, "REQUIREMENTS", pins)
    assert "tested with 0.0.1" in examined("en")[1]
    monkeypatch.setattr(doctor, "REQUIREMENTS", tmp_path / "absent.txt")
    assert "tested with" not in examined("en")[1]


def test_every_device_is_listed_as_present_or_absent(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    said = examined("en")[1]
    assert "cpu: present" in said
    assert "cuda: " in said
    assert "mps: " in said


def test_every_layer_and_result_has_texts_in_both_languages():
    assert set(doctor.LAYERS) == set(ESCAPES)
    layers = [text for words in doctor.LAYERS.values() for text in (words.name, words.tried)]
    for text in (*layers, *doctor.DEEDS.values(), *doctor.STATUS.values(), *doctor.REMEDIES.values()):
        assert text.en
        assert text.zh
    for layer in ESCAPES:
        for lang in LANGUAGES:
            assert all(doctor.remedies(layer, lang))


@linux
def test_a_blocking_kernel_setting_is_shown_with_its_command(monkeypatch):
    kernel_type = Path("/proc/sys/kernel/ostype").read_text().strip()
    monkeypatch.setattr(doctor, "OBSTACLES", (("kernel.ostype", kernel_type, "other"),))
    assert "sudo sysctl kernel.ostype=other" in doctor.remedies("mount", "en")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("guarantee", guarantees.GUARANTEES)
def test_grading_is_refused_when_a_guarantee_has_no_layer(guarantee, lang):
    missing = dict.fromkeys(guarantees.GUARANTEES[guarantee].layers, "not on this kernel")
    with pytest.raises(guarantees.UntrustedMachine) as refusal:
        guarantees.demand(missing)
    for text in (guarantees.GUARANTEES[guarantee].text[lang], "not on this kernel", "doctor", "--trust-submissions"):
        assert text in refusal.value.message[lang]


@pytest.mark.parametrize("layer", OF_THE_MACHINE)
def test_grading_continues_when_another_layer_keeps_the_guarantee(layer):
    guarantees.demand({layer: "not on this kernel"})
