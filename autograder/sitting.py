"""One submission before the examiner: its cells loaded into a sandboxed process, its functions there to be asked.

A cell or a call that kills the process costs only itself. The process is started anew without that cell, and the
other parts are examined; the time of the whole sitting is limited.
"""

import re
import time
from dataclasses import dataclass, field

from .catalogue import Exercise, Part
from .process import StudentProcess, too_slow
from .proxy import Raised, checked
from .verdicts import Broken, Verdict, gravest
from .zygote import Zygote


@dataclass
class Cell:
    """A code cell of a submission, and what became of it."""

    source: str
    name: str  # how a message calls it
    answers: str | None = None  # the part whose answer cell it is
    output: str = ""
    broken: Broken | None = None
    skip: bool = field(default=False, repr=False)


class Sitting:
    """The transport of a `Student` whose code runs in a process of its own."""

    def __init__(self, zygote: Zygote, exercise: Exercise, cells: list[Cell]):
        self.zygote, self.exercise, self.cells = zygote, exercise, cells
        self.device = zygote.device
        self.process: StudentProcess | None = None
        self.missing_layers: dict[str, str] = {}
        self.left = exercise.limits.wall_seconds  # for the answers; nobody pays for the time of the examiner

    def __enter__(self) -> "Sitting":
        return self

    def __exit__(self, *failure) -> None:
        if self.process is not None:
            self.process.end()
            self.process = None

    def ask(self, request: dict) -> dict:
        self._load()
        try:
            return self._ask(request)
        except Broken as broken:
            if broken.fatal:
                self.process = None
                subject = request.get("target")
                if isinstance(subject, str):
                    raise _about(subject, broken) from None
            raise

    def memory(self, forget_peak: bool = False) -> dict[str, int]:
        """What the kernel says of the process's memory; nothing when there is no process."""
        self._load()
        try:
            return self.process.memory(forget_peak)
        except (OSError, ValueError):
            return {}

    def verdict_on(self, part: Part) -> Broken | None:
        """Why this part does not exist, if a cell that broke is the reason."""
        definition = re.compile(rf"^\s*(?:async\s+)?(?:def|class)\s+{part.name}\b|^{part.name}\s*=", re.MULTILINE)
        for cell in self.cells:
            if cell.broken and (cell.answers == part.name or definition.search(cell.source)):
                return cell.broken
        return None

    def gravest_cell(self) -> Verdict:
        """What the cells alone say: a hang, exhausted memory or a dead process counts, an ordinary error does not."""
        return gravest([Verdict.PASS, *(c.broken.verdict for c in self.cells if c.broken and c.skip)])

    def _ask(self, request: dict) -> dict:
        asked = time.monotonic()
        if self.left <= 0:
            self.__exit__()
            raise too_slow()
        try:
            return self.process.ask(request, asked + min(self.exercise.limits.call_seconds, self.left))
        finally:
            self.left -= time.monotonic() - asked

    def _load(self) -> None:
        while self.process is None:
            self.process = self.zygote.spawn(self.exercise.limits)
            self.missing_layers = self.process.missing_layers
            for cell in self.cells:
                if not cell.skip and not self._run(cell):
                    break

    def _run(self, cell: Cell) -> bool:
        """Run one cell; False when it took the process with it."""
        try:
            done = checked(self._ask({"do": "cell", "source": cell.source, "name": cell.name}))["value"]
            cell.output = str(done["output"])[: int(self.exercise.limits.output_kb * 1024) + 100]
            cell.broken = Raised(cell.name, done["error"]) if done["error"] else None
            cell.skip = cell.broken is not None and cell.broken.verdict is Verdict.MEMORY
            return True
        except Broken as broken:
            cell.broken, cell.skip, self.process = _about(cell.name, broken), True, None
            return False
        except (KeyError, TypeError, AttributeError):
            cell.broken = Broken(
                Verdict.POLICY, f"{cell.name}: a forged answer", f"{cell.name}：伪造的回答", fatal=True
            )
            cell.skip = True
            self.__exit__()
            return False


def _about(subject: str, broken: Broken) -> Broken:
    """The same, with the name of what broke in front."""
    en, zh = broken.message["en"], broken.message["zh"]
    return Broken(broken.verdict, f"{subject}: {en}", f"{subject}：{zh}", fatal=broken.fatal)
