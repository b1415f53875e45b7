"""Run the same attacks against our grader and against stock `nbgrader autograde`: how many succeed?

    python -m tests.attacks.side_by_side [--json FILE] [CLASS…]

This needs root, because stock nbgrader runs in a cage (cage.py). It takes about half an hour; with --json it continues where
it was stopped. On a busy machine an attack may count as "stopped" only because the machine was slow.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import nbformat

from autograder.checks.samples import solution
from autograder.intake.submission import grade_id

from . import cage, stock_nbgrader, verdicts
from .corpus import Attack, program, programs
from .target import Target, contacted, new_target

sys.path.insert(0, str(Path(__file__).parents[1]))
import ordinary_user

COURSE, SECONDS = Path("/mnt/course"), 300
NBGRADER = [sys.executable, "-m", "nbgrader"]
PATH = os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])  # nbgrader starts `alembic`
HOW = {"marks": "marks it did not earn", "read": "read what it should not", "left": "left something behind",
       "stopped": "stopped the grading of others"}  # fmt: skip


def prepared(folder: Path) -> dict[str, bytes]:
    """The files of a stock course with the assignment released and entered in its gradebook."""
    answers = {grade_id(cell).removeprefix("answer-"): cell.source for cell in solution(stock_nbgrader.MASKS).cells}
    source = folder / "source" / "06_masks"
    source.mkdir(parents=True)
    nbformat.write(stock_nbgrader.assignment(answers), source / "06_masks.ipynb")
    (folder / "nbgrader_config.py").write_text(stock_nbgrader.CONFIG)
    done = subprocess.run(
        [*NBGRADER, "generate_assignment", "06_masks"],
        cwd=folder,
        env=os.environ | {"PATH": PATH},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"nbgrader cannot release its assignment:\n{done.stderr[-2000:]}")
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def against_stock(course: dict[str, bytes], attack: Attack | None) -> list[str]:
    """What an attack achieves against stock nbgrader. A right answer (None) must get full marks and nothing else."""
    submitted = COURSE / "submitted" / "attacker" / "06_masks"
    held = {}

    def prepare():
        for name, content in course.items():
            (COURSE / name).parent.mkdir(parents=True, exist_ok=True)
            (COURSE / name).write_bytes(content)
        target = held["target"] = held["stack"].enter_context(new_target())
        target.canaries["neighbour"] = "neighbour-" + target.token
        released = nbformat.read(COURSE / "release" / "06_masks" / "06_masks.ipynb", as_version=4)
        neighbour = COURSE / "submitted" / "neighbour" / "06_masks" / "06_masks.ipynb"
        for place in (submitted, neighbour.parent):
            place.mkdir(parents=True)
        nbformat.write(stock_nbgrader.with_program(released, f"# {target.canaries['neighbour']}"), neighbour)
        source = program(_StockCourse(target, neighbour), attack) if attack else as_answers()
        released = nbformat.read(COURSE / "release" / "06_masks" / "06_masks.ipynb", as_version=4)
        nbformat.write(stock_nbgrader.with_program(released, source), submitted / "06_masks.ipynb")
        for here, folders, names in os.walk("/mnt"):
            for name in [".", *folders, *names]:
                os.lchown(os.path.join(here, name), cage.NOBODY, cage.NOBODY)
        held["before"] = {path: path.read_bytes() for path in (neighbour, submitted / "06_masks.ipynb")}

    def judge(status) -> dict:
        target = held["target"]
        achieved = [] if status in (0, 1) else [f"stopped: nbgrader {'hung' if status is None else f'died ({status})'}"]
        marks = stock_nbgrader.scores(COURSE / "gradebook.db").get("attacker", {})
        if attack is None:
            return {"achieved": achieved, "marks": marks}
        points = {part.name: part.points for part in stock_nbgrader.MASKS.parts}
        allowed = attack.earns + sum(points[name] for name in attack.loses)
        if sum(marks.values()) > allowed:
            achieved.append(f"marks: {sum(marks.values())} of {allowed}")
        achieved += [f"marks: all of {name}" for name in attack.loses if marks.get(name, 0) >= points[name]]
        written = [path for path in (COURSE / "autograded").glob("attacker/*/*") if path.is_file()]
        told = "".join(path.read_text(errors="replace") for path in written)
        achieved += [f"read: {name}" for name, canary in target.canaries.items() if canary in told]
        if target.mark(attack.name) + " read this" in told:
            achieved.append("read: what it looked for")
        achieved += [f"left: {what}" for what in target.left_by(attack.name)]
        achieved += [f"network: {name}" for name in contacted(target)]
        changed = [
            path for path, content in held["before"].items() if not path.exists() or path.read_bytes() != content
        ]
        return {"achieved": achieved + [f"left: changed {path}" for path in changed], "marks": marks}

    with ExitStack() as held["stack"]:
        environment = {"PATH": PATH, "HOME": "/mnt", "LANG": "C.UTF-8", "SECRET_TOKEN": "secret-of-the-environment",
                       "OMP_NUM_THREADS": "1", "JUPYTER_PLATFORM_DIRS": "1"}  # fmt: skip
        command = [*NBGRADER, "autograde", "06_masks", "--student", "attacker"]
        seen = cage.caged(
            prepare, judge, command, environment, SECONDS, lambda: ordinary_user.make_reachable(ordinary_user.NEEDED)
        )
    if not seen:
        raise RuntimeError("the cage said nothing")
    if attack is None:
        return [json.dumps(seen)]
    return seen["achieved"] + [f"left: process {name}" for name in seen["processes"]]


class _StockCourse:
    """A target whose class folder is the stock course."""

    def __init__(self, target: Target, neighbour: Path):
        self.target, self.place = target, neighbour
        target.canaries |= {"salt": "secret-of-the-environment", "environment": "secret-of-the-environment"}

    def filled(self, source: str, attack: str) -> str:
        source = source.replace("@NEIGHBOUR@", str(self.place)).replace("@SUBMITTED@", str(COURSE / "submitted"))
        source = source.replace("@GRADEBOOK@", str(COURSE / "gradebook.db")).replace(
            "@OUT@", str(COURSE / "autograded")
        )
        return self.target.filled(source, attack)


def as_answers() -> str:
    """The right answers as one program."""
    return "\n\n".join(
        cell.source for cell in solution(stock_nbgrader.MASKS).cells if grade_id(cell).startswith("answer-")
    )


def against_ours(attacks: list[Attack]) -> dict[str, list[str]]:
    with new_target() as target:
        verdicts.hand_in(target, attacks)
        run = verdicts.run(target, attacks)
        if run.status != 0 or run.left_behind or {r["score"] for r in run.controls()} != {20}:
            raise RuntimeError(f"our own run did not end well: {run.left_behind} {run.printed[-2000:]}")
        return run.successes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("classes", nargs="*", type=int, help="only these classes of attack")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    attacks = [a for a in programs() if a.exercise == "06_masks" and (not args.classes or a.number in args.classes)]
    say = sys.stdout.write
    ours = against_ours(attacks)
    say(f"ours: {len(ours)} of {len(attacks)} succeed\n")
    with tempfile.TemporaryDirectory(prefix="stock-") as folder:
        course = prepared(Path(folder))
        control = json.loads(against_stock(course, None)[0])
        if sum(control["marks"].values()) != 20:
            raise RuntimeError(f"stock nbgrader does not give full marks to a right answer: {control}")
        theirs = json.loads(args.json.read_text())["stock"] if args.json and args.json.exists() else {}
        for attack in attacks:  # one at a time: all cages use one user, whose processes the kernel counts together
            if attack.name not in theirs:
                theirs[attack.name] = against_stock(course, attack)
            achieved = "; ".join(theirs[attack.name])[:150] or "failed"
            say(f"stock {attack.name}: {achieved}\n")
            sys.stdout.flush()
            if args.json:
                args.json.write_text(json.dumps({"attacks": len(attacks), "ours": ours, "stock": theirs}, indent=1))
    say(table(attacks, ours, theirs))
    return 0


def table(attacks: list[Attack], ours: dict, theirs: dict) -> str:
    """The table for the README. Reaching the network has its own row, because it is not a success in itself."""

    def row(words: str, *kinds: str) -> str:
        counts = [
            sum(any(a.partition(":")[0] in kinds for a in done) for done in found.values()) for found in (ours, theirs)
        ]
        return f"| {words} | {counts[0]} | {counts[1]} |"

    return "\n".join([
        f"| of {len(attacks)} attacks | this grader | stock nbgrader |", "|---|---|---|",
        *(row(words, kind) for kind, words in HOW.items()),
        row("**succeed in one way or another**", *HOW),
        row("also reach the network", "network"), "",
    ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
