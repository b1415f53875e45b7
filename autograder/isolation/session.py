"""One submission in front of the examiner: its cells run in a sandboxed process, its functions ready to be called.

A cell or a call that kills the process costs only itself. The process is started again without that cell, and the
other parts are examined. The time of the whole session is limited.
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
    """What became of a cell when it was run."""

    cell: Cell
    output: str = ""
    broken: Broken | None = None
    skip: bool = field(default=False, repr=False)  # it is not run again when the process has to be restarted


class StudentSession:
    """The transport of a `Student` whose code runs in a process of its own.

    `may_lack` are the sandbox layers that this machine was accepted without; None accepts any. A process that lacks another
    layer stops the session (`MissingLayers`), because nobody agreed to that.
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
        self.left = self.limits.wall_seconds  # for the answers; the examiner's own time does not count

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
        """What the kernel says of the process's memory; nothing when the process cannot be asked."""
        try:
            return self._loaded().memory(forget_peak)
        except (OSError, ValueError):
            return {}

    def verdict_on(self, part: Part) -> Broken | None:
        """Why this part does not exist, if a cell that broke is the reason."""
        definition = re.compile(rf"^\s*(?:async\s+)?(?:def|class)\s+{part.name}\b|^{part.name}\s*=", re.MULTILINE)
        for run in self.cells:
            if run.broken and (run.cell.answers == part.name or definition.search(run.cell.source)):
                return run.broken
        return None

    def gravest_cell(self) -> Verdict:
        """What the cells alone say: a hang, exhausted memory or a dead process counts, an ordinary error does not."""
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
        """Run one cell; False when it took the process with it."""
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
