"""One submission in a sandboxed process: its cells have run, and the examiner can call its functions.

If a cell or a call kills the process, only that cell or call is lost. A new process is started without the cell, and
the other parts are examined. The time of the whole session is limited.
"""

import re
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from autograder.catalogue import Exercise, Limits, Part
from autograder.exam.answers import Raised, checked
from autograder.intake.submission import Cell
from autograder.student.wire import Answer, Request
from autograder.verdicts import Broken, Verdict, gravest

from .guarantees import demand_layers
from .process import StudentProcess, too_slow
from .zygote import Zygote


@dataclass
class CellRun:
    """The result of running a cell."""

    cell: Cell
    output: str = ""
    broken: Broken | None = None
    skip: bool = field(default=False, repr=False)  # do not run it again after a restart of the process


class StudentSession:
    """The transport of a `Student` whose code runs in a separate process.

    `may_lack` are the sandbox layers that this machine may lack; None means any. If the process lacks another layer, the
    session raises `MissingLayers`.
    """

    def __init__(
        self,
        zygote: Zygote,
        exercise: Exercise,
        cells: list[Cell],
        may_lack: Collection[str] | None = (),
        limits: Limits | None = None,
    ):
        self.zygote, self.exercise, self.may_lack = zygote, exercise, may_lack
        self.cells = [CellRun(cell, skip=cell.only_asks) for cell in cells]
        self.limits = limits or exercise.limits
        self.device = zygote.device
        self.process: StudentProcess | None = None
        self.left = self.limits.wall_seconds  # time left for answers; the examiner's own time does not count

    def __enter__(self) -> "StudentSession":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        if self.process is not None:
            self.process.end()
            self.process = None

    def ask(self, request: Request) -> Answer:
        process = self._loaded()
        try:
            return self._ask(process, request)
        except Broken as broken:
            if broken.fatal:
                self.process = None
                subject = request.get("target")
                if isinstance(subject, str):
                    raise broken.about(subject) from None
            raise

    def memory(self, forget_peak: bool = False) -> dict[str, int]:
        """The memory of the process, measured by the kernel; empty if it cannot be measured."""
        try:
            return self._loaded().memory(forget_peak)
        except (OSError, ValueError):
            return {}

    def verdict_on(self, part: Part) -> Broken | None:
        """The failure of the cell that should define this part, if there is one."""
        definition = re.compile(rf"^\s*(?:async\s+)?(?:def|class)\s+{part.name}\b|^{part.name}\s*=", re.MULTILINE)
        for run in self.cells:
            if run.broken and (run.cell.answers == part.name or definition.search(run.cell.source)):
                return run.broken
        return None

    def gravest_cell(self) -> Verdict:
        """The most serious verdict of the cells. A timeout, too much memory and a crash count; an ordinary error does not."""
        return gravest([Verdict.PASS, *(run.broken.verdict for run in self.cells if run.broken and run.skip)])

    def _ask(self, process: StudentProcess, request: Request) -> Answer:
        asked = time.monotonic()
        if self.left <= 0:
            self.close()
            raise too_slow()
        try:
            return process.ask(request, asked + min(self.limits.call_seconds, self.left))
        finally:
            self.left -= time.monotonic() - asked

    def _loaded(self) -> StudentProcess:
        """The process, with all cells run in it."""
        while self.process is None:
            self.process = StudentProcess.spawn(self.zygote, self.limits)
            try:
                demand_layers(self.process.missing_layers, self.may_lack)
            except BaseException:
                self.close()
                raise
            for run in self.cells:
                if not run.skip and not self._run(self.process, run):
                    break
        return self.process

    def _run(self, process: StudentProcess, run: CellRun) -> bool:
        """Run one cell; False when it ended the process."""
        name = run.cell.name
        request = {"do": "cell", "source": run.cell.source, "name": name}
        try:
            done = checked(self._ask(process, request), request)["value"]
            run.output = str(done["output"])[: int(self.limits.output_kb * 1024) + 100]
            run.broken = Raised(name, done["error"]) if done["error"] else None
            run.skip = run.broken is not None and run.broken.verdict is Verdict.MEMORY
            return True
        except Broken as broken:
            run.broken, run.skip, self.process = broken.about(name), True, None
            return False
        except (KeyError, TypeError, AttributeError):
            run.broken = Broken(Verdict.POLICY, f"{name}: a forged answer", f"{name}：伪造的回答", fatal=True)
            run.skip = True
            self.close()
            return False
