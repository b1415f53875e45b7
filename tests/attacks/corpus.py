"""All attacks by name, and how each is handed in."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.catalogue import Exercise, find
from autograder.checks.samples import as_script, solution

from .target import Target

PROGRAMS = Path(__file__).parent / "programs"
CLASSES = range(1, 31)


@dataclass(frozen=True)
class Attack:
    """One submission that must fail safely."""

    name: str  # such as "21_processes/fork_bomb": the class of attack, and what it is
    description: str  # what it tries and what must happen
    put: Callable[[Target, "Attack"], None]
    exercise: str = "06_masks"
    earns: float = 0  # what its honest part is worth
    loses: tuple[str, ...] = ()  # parts that may earn something, but not everything
    student: str = ""  # set when the name of the student is the attack

    @property
    def number(self) -> int:
        return int(self.name[:2])

    @property
    def who(self) -> str:
        return self.student or self.name.replace("/", " ")

    @property
    def shown(self) -> str:
        """The name as reports and the gradebook hold it."""
        return os.fsencode(self.who).decode(errors="backslashreplace")

    def place(self, target: Target) -> Path:
        """The folder in which the grader looks for it."""
        folder = target.submitted / self.who / self.exercise
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def put_program(target: Target, attack: Attack) -> None:
    (attack.place(target) / f"{attack.exercise}.py").write_text(program(target, attack), encoding="utf-8")


def program(target: Target, attack: Attack) -> str:
    """The source as it is handed in."""
    source = (PROGRAMS / f"{attack.name}.py").read_text(encoding="utf-8")
    if "# right answers follow" in source:
        source += "\n\n# %%\n" + right_script(find(attack.exercise))
    return target.filled(source, attack.name)


@cache
def right_script(exercise: Exercise) -> str:
    return as_script(solution(exercise))


def programs() -> list[Attack]:
    return [_described(path) for path in sorted(PROGRAMS.glob("*/*.py"))]


def _described(path: Path) -> Attack:
    source = path.read_text(encoding="utf-8")
    about = dict(re.findall(r"^# (exercise|earns|loses a promise of): (.+)$", source, re.MULTILINE))
    follow = "# right answers follow" in source
    return Attack(
        name=f"{path.parent.name}/{path.stem}",
        description=source.splitlines()[0].strip('"'),
        put=put_program,
        exercise=about.get("exercise", "06_masks"),
        earns=float(about.get("earns", 20 if follow else 0)),
        loses=tuple(about.get("loses a promise of", "").replace(",", " ").split()),
    )


def corpus() -> list[Attack]:
    from .unusual import UNUSUAL

    found = sorted([*programs(), *UNUSUAL], key=lambda attack: attack.name)
    names = [attack.name for attack in found]
    if len(set(names)) < len(names):
        raise LookupError("two attacks have the same name")
    return found


def put_control(target: Target, student: str, exercise: str = "06_masks") -> None:
    place = target.submitted / student / exercise
    place.mkdir(parents=True)
    (place / f"{exercise}.py").write_text(right_script(find(exercise)), encoding="utf-8")


def put_neighbour(target: Target) -> None:
    """A right answer of another student, which attacks must not read."""
    target.neighbour.parent.mkdir(parents=True)
    target.neighbour.write_text(f"# {target.canaries['neighbour']}\n{right_script(find('06_masks'))}", encoding="utf-8")
    target.neighbour.chmod(0o666)
