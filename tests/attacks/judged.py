"""Grade attacks among right answers, and judge from outside what each of them achieved."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .corpus import Attack, put_control, put_neighbour
from .scene import Scene, adopting, family, overheard

GRADER = Path(__file__).with_name("graded.py")
PATIENCE = 30  # seconds until what was ended must be gone
MARKS, READ, LEFT = "marks", "read", "left"


@dataclass
class Run:
    """One run of the grader over some attacks, as it looks from outside."""

    status: int
    printed: str
    results: dict[str, dict]
    successes: dict[str, list[str]]  # by attack: what it achieved, and how that is known
    survivors: dict[int, str] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)
    litter: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    def controls(self) -> list[dict]:
        return [result for student, result in self.results.items() if student.endswith("control")]

    @property
    def left_behind(self) -> list:
        return [*self.survivors.values(), *self.heard, *self.mounts, *self.litter, *self.changed]


def hand_in(scene: Scene, attacks: list[Attack]) -> None:
    """The attacks, a neighbour with a secret, and a right answer after every class of attack."""
    put_neighbour(scene)
    for attack in attacks:
        attack.put(scene, attack)
    for number in sorted({attack.number for attack in attacks}):
        put_control(scene, f"{number:02} control")


def command(scene: Scene) -> list[str]:
    return [sys.executable, str(GRADER), "grade", str(scene.submitted), "--out", str(scene.out), "--jobs", "4",
            "--db", f"sqlite:///{scene.gradebook}"]  # fmt: skip


def run(scene: Scene, attacks: list[Attack], start=None, without: str = "", threads: str = "1") -> Run:
    """Grade what is handed in. `start` runs a command, as somebody else if need be."""
    environment = scene.environment() | {"ATTACKS_WITHOUT": without, "OMP_NUM_THREADS": threads}
    before, mounts, submitted = family(), _mounts(), scene.handed_in()
    with adopting():
        done = (start or _start)(*command(scene), env=environment, cwd=str(scene.folder))
        left = survivors(before)
    found = _results(scene)
    return Run(
        status=done.returncode,
        printed=done.stdout + done.stderr,
        results=found,
        successes={attack.name: achieved for attack in attacks if (achieved := achievements(scene, attack, found))},
        survivors=left,
        heard=overheard(scene),
        mounts=sorted(set(_mounts()) - set(mounts)),
        litter=[str(path) for path in scene.temporary.iterdir()],
        changed=[place for place, about in scene.handed_in().items() if submitted.get(place) != about],
    )


def achievements(scene: Scene, attack: Attack, results: dict[str, dict]) -> list[str]:
    """What an attack got that it should not have; an empty list is what we want."""
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
    told = told_about(scene, attack, result)
    achieved += [f"{READ}: {name}" for name, canary in scene.canaries.items() if canary in told]
    if scene.mark(attack.name) + " read this" in told:
        achieved.append(f"{READ}: {told.partition(' read this')[2][:200]}")
    return achieved + [f"{LEFT}: {what}" for what in scene.left_by(attack.name)]


def told_about(scene: Scene, attack: Attack, result: dict) -> str:
    """Every word that reaches a person about this submission."""
    texts = [json.dumps(result, ensure_ascii=False)]
    for folder in (
        scene.out / attack.shown,
        scene.out / "gradescope" / attack.shown,
        scene.folder / "autograded" / attack.shown,
    ):
        for here, _, names in os.walk(folder):
            texts += [Path(here, name).read_text(encoding="utf-8", errors="replace") for name in names]
    return "\n".join(texts)


def _start(*command: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, **options)


def survivors(before: dict[int, str]) -> dict[int, str]:
    """Processes that are still there when everything had time to end."""
    ends = time.monotonic() + PATIENCE
    while (left := {pid: name for pid, name in family().items() if pid not in before}) and time.monotonic() < ends:
        time.sleep(0.1)
    return left


def _mounts() -> list[str]:
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def _results(scene: Scene) -> dict[str, dict]:
    try:
        written = json.loads((scene.out / "results.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {result["student"]: result for result in written["submissions"]}
