"""Grade attacks together with right answers, and find out from outside what each attack achieved."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .corpus import Attack, put_control, put_neighbour
from .target import Target, adopting, contacted, family

GRADER = Path(__file__).with_name("grader.py")
PATIENCE = 30  # seconds until killed processes must be gone
MARKS, READ, LEFT = "marks", "read", "left"


@dataclass
class Run:
    """One run of the grader over some attacks, seen from outside."""

    status: int
    printed: str
    results: dict[str, dict]
    successes: dict[str, list[str]]  # by attack: what it achieved, and how that is known
    survivors: dict[int, str] = field(default_factory=dict)
    contacts: list[str] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    def controls(self) -> list[dict]:
        return [result for student, result in self.results.items() if student.endswith("control")]

    @property
    def left_behind(self) -> list:
        return [*self.survivors.values(), *self.contacts, *self.mounts, *self.leftovers, *self.changed]


def hand_in(target: Target, attacks: list[Attack]) -> None:
    """Hand in the attacks, a neighbour with a secret, and a right answer for every class of attack."""
    put_neighbour(target)
    for attack in attacks:
        attack.put(target, attack)
    for number in sorted({attack.number for attack in attacks}):
        put_control(target, f"{number:02} control")


def command(target: Target) -> list[str]:
    return [sys.executable, str(GRADER), "grade", str(target.submitted), "--out", str(target.out), "--jobs", "4",
            "--db", f"sqlite:///{target.gradebook}"]  # fmt: skip


def run(target: Target, attacks: list[Attack], start=None, without: str = "", threads: str = "1") -> Run:
    """Grade what was handed in. `start` runs a command, possibly as another user."""
    environment = target.environment() | {"ATTACKS_WITHOUT": without, "OMP_NUM_THREADS": threads}
    before, mounts, submitted = family(), _mounts(), target.handed_in()
    with adopting():
        done = (start or _start)(*command(target), env=environment, cwd=str(target.folder))
        left = survivors(before)
    found = _results(target)
    return Run(
        status=done.returncode,
        printed=done.stdout + done.stderr,
        results=found,
        successes={attack.name: achieved for attack in attacks if (achieved := achievements(target, attack, found))},
        survivors=left,
        contacts=contacted(target),
        mounts=sorted(set(_mounts()) - set(mounts)),
        leftovers=[str(path) for path in target.temporary.iterdir()],
        changed=[place for place, about in target.handed_in().items() if submitted.get(place) != about],
    )


def achievements(target: Target, attack: Attack, results: dict[str, dict]) -> list[str]:
    """What an attack achieved. The list must be empty."""
    result = results.get(attack.shown, {"score": 0, "parts": []})
    achieved = []
    parts = {part["id"]: part for part in result["parts"]}
    allowed = attack.earns + sum(parts[name]["max_score"] for name in attack.loses if name in parts)
    if result["score"] > allowed:
        achieved.append(f"{MARKS}: {result['score']} of {allowed}")
    achieved += [
        f"{MARKS}: all of {name}"
        for name in attack.loses
        if name in parts and parts[name]["score"] >= parts[name]["max_score"]
    ]
    told = told_about(target, attack, result)
    achieved += [f"{READ}: {name}" for name, canary in target.canaries.items() if canary in told]
    if target.mark(attack.name) + " read this" in told:
        achieved.append(f"{READ}: {told.partition(' read this')[2][:200]}")
    return achieved + [f"{LEFT}: {what}" for what in target.left_by(attack.name)]


def told_about(target: Target, attack: Attack, result: dict) -> str:
    """Every text that is written about this submission."""
    texts = [json.dumps(result, ensure_ascii=False)]
    for folder in (
        target.out / attack.shown,
        target.out / "gradescope" / attack.shown,
        target.folder / "autograded" / attack.shown,
    ):
        for here, _, names in os.walk(folder):
            texts += [Path(here, name).read_text(encoding="utf-8", errors="replace") for name in names]
    return "\n".join(texts)


def _start(*command: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, **options)


def survivors(before: dict[int, str]) -> dict[int, str]:
    """Processes that are still there after everything had time to end."""
    ends = time.monotonic() + PATIENCE
    while (left := {pid: name for pid, name in family().items() if pid not in before}) and time.monotonic() < ends:
        time.sleep(0.1)
    return left


def _mounts() -> list[str]:
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def _results(target: Target) -> dict[str, dict]:
    try:
        written = json.loads((target.out / "results.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {result["student"]: result for result in written["submissions"]}
