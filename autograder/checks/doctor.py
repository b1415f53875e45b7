"""Report whether this machine may grade strangers' code: sandbox, versions, devices, and how to get what is missing."""

import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.course import PACKAGE
from autograder.errors import UserError
from autograder.isolation import guarantees
from autograder.language import COLON, Text

from . import doctor_words as words
from .doctor_words import ALWAYS, DEEDS, LAYERS, REMEDIES, STATUS
from .layers import ESCAPES, HOLDS, MISSING, UNPROVEN, Finding, Lab, prove

SOUND, UNSOUND = 0, 3  # exit status
SHOWN = ("torch", "numpy", "safetensors", "ipython", "nbgrader")
REQUIREMENTS = PACKAGE.parent / "requirements.txt"
COLOURS = {HOLDS: "green", MISSING: "red", UNPROVEN: "yellow"}
OBSTACLES = (  # a setting, the value that refuses namespaces to ordinary users, the value that grants them
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user.max_user_namespaces", "0", "15000"),
)
DOCKER = ("--cap-add SYS_ADMIN", "--security-opt seccomp=unconfined", "--security-opt apparmor=unconfined")


def examine_machine(console: Console, lang: str) -> int:
    """Print what holds on this machine. Returns 0 if strangers' code may be graded here, otherwise 3."""
    _print_versions(console, lang)
    _print_devices(console, lang)
    if not sys.platform.startswith("linux"):
        console.print(words.NOT_LINUX[lang].format(system=platform.system()))
        return UNSOUND
    try:
        with console.status(words.TRYING[lang]), Lab() as lab:
            findings = [prove(lab, layer) for layer in ESCAPES]
    except Exception as failed:
        reason = failed.message[lang] if isinstance(failed, UserError) else str(failed)
        console.print(words.NOT_STARTED[lang], reason, markup=False)
        return UNSOUND
    if console.is_terminal:
        console.print(_table(findings, lang), soft_wrap=False)
    else:
        for finding in findings:
            console.print(_line(finding, lang), markup=False)
    _print_remedies(console, lang, findings)
    return _print_guarantees(console, lang, findings)


def _table(findings: list[Finding], lang: str) -> Table:
    titles = (Text("layer", "隔离层"), Text("tried", "尝试"), Text("what happened", "结果"))
    table = Table(*(title[lang] for title in titles), "")
    for finding in findings:
        layer, status = LAYERS[finding.layer], f"[{COLOURS[finding.status]}]{STATUS[finding.status][lang]}[/]"
        table.add_row(layer.name[lang], layer.tried[lang], escape(happened(finding, lang)), status)
    return table


def _line(finding: Finding, lang: str) -> str:
    layer, status, what = LAYERS[finding.layer], STATUS[finding.status], happened(finding, lang)
    return Text(
        f"{layer.name.en}: {status.en} ({layer.tried.en}: {what})",
        f"{layer.name.zh}：{status.zh}（{layer.tried.zh}：{what}）",
    )[lang]


def happened(finding: Finding, lang: str) -> str:
    """One line about an escape: stopped, got through, or stopped for another reason."""
    if finding.status == MISSING:
        through = words.GOT_THROUGH[lang] + _deeds(finding.through, lang) if finding.through else ""
        return "; ".join(text for text in (through, finding.reason) if text)
    if finding.slow:
        return words.TOO_SLOW[lang]
    if finding.status == UNPROVEN:
        return finding.reason or words.STOPPED_ANYWAY[lang]
    if not finding.otherwise:
        return words.NOT_ROOT[lang]
    return words.STOPPED[lang] + _deeds(finding.otherwise, lang)


def _deeds(names: tuple[str, ...], lang: str) -> str:
    return Text(", ", "、")[lang].join(DEEDS[name][lang] for name in names)


def _print_remedies(console: Console, lang: str, findings: list[Finding]) -> None:
    by_remedy: dict[str, list[str]] = {}
    for finding in findings:
        if finding.status == MISSING:
            for remedy in remedies(finding.layer, lang):
                by_remedy.setdefault(remedy, []).append(LAYERS[finding.layer].name[lang])
    for remedy, names in by_remedy.items():
        line = Text(f"to get {', '.join(names)}: {remedy}", f"补齐{'、'.join(names)}：{remedy}")[lang]
        console.print(line, markup=False)


def remedies(layer: str, lang: str) -> list[str]:
    """How to get a layer on this machine."""
    if layer in ("mount", "network", "pid", "ipc") and (found := _obstacles()):
        return found
    remedy = REMEDIES.get(layer, REMEDIES["mount"])[lang]
    return [remedy.format(kernel=platform.release(), machine=platform.machine(), python=sys.base_prefix)]


def _obstacles() -> list[str]:
    """The commands that would make namespaces available, if a setting of this machine forbids them."""
    found = []
    for setting, wrong, right in OBSTACLES:
        path = Path("/proc/sys", *setting.split("."))
        if path.exists() and path.read_text().strip() == wrong:
            found.append(f"sudo sysctl {setting}={right}")
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        found.append(f"docker run {' '.join(DOCKER)} …")
    return found


def _print_guarantees(console: Console, lang: str, findings: list[Finding]) -> int:
    by_layer = {finding.layer: finding for finding in findings}
    console.print()
    always = [guarantees.Guarantee((layer,), text) for layer, text in ALWAYS.items()]
    for guarantee in [*guarantees.GUARANTEES.values(), *always]:
        state = _kept_or_why_not([by_layer[layer] for layer in guarantee.layers], lang)
        console.print(guarantee.text[lang] + COLON[lang] + state, markup=False)
    sound = guarantees_hold(findings)
    console.print((words.SOUND if sound else words.UNSOUND)[lang])
    console.print(words.READ_MORE[lang])
    return SOUND if sound else UNSOUND


def _kept_or_why_not(findings: list[Finding], lang: str) -> str:
    """Which layers keep a guarantee, or what happened to each layer that should."""
    keepers = [LAYERS[finding.layer].name[lang] for finding in findings if finding.status == HOLDS]
    if keepers:
        return words.KEPT_BY[lang] + Text(", ", "、")[lang].join(keepers)
    reasons = [f"{LAYERS[f.layer].name[lang]}: {happened(f, lang) or STATUS[f.status][lang]}" for f in findings]
    return Text(f"NOT KEPT ({'; '.join(reasons)})", f"无法保证（{'；'.join(reasons)}）")[lang]


def guarantees_hold(findings: list[Finding]) -> bool:
    """Whether a proven layer keeps each guarantee, and all layers that every machine has were proven too."""
    unproven = {finding.layer: finding.status for finding in findings if finding.status != HOLDS}
    return not guarantees.unmet(unproven) and not any(layer in unproven for layer in ALWAYS)


def _print_versions(console: Console, lang: str) -> None:
    who = "root" if hasattr(os, "geteuid") and os.geteuid() == 0 else Text("an ordinary user", "普通用户")[lang]
    console.print(
        f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}, {who}"
    )
    pins = pinned()
    for name in SHOWN:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = Text("not installed", "未安装")[lang]
        wanted = pins.get(name)
        differs = wanted is not None and version.partition("+")[0] != wanted
        note = Text(f" (the course is tested with {wanted})", f"（课程用 {wanted} 测试）")[lang] if differs else ""
        console.print(f"  {name} {version}{note}", markup=False)


def pinned() -> dict[str, str]:
    """The versions in requirements.txt; empty in an installed package, which has no such file."""
    if not REQUIREMENTS.is_file():
        return {}
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return {match[1].lower(): match[2] for match in (re.match(r"([\w.-]+)==([\w.]+)", line) for line in lines) if match}


def _print_devices(console: Console, lang: str) -> None:
    import torch

    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    state = {True: Text("present", "可用")[lang], False: Text("absent", "不可用")[lang]}
    console.print("  " + ", ".join(f"{name}: {state[there]}" for name, there in available.items()))
