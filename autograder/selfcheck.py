"""A learner's own notebooks, checked in this process: no sandbox is needed against oneself, and it works everywhere."""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Column, Table

from . import card, progress
from .catalogue import Exercise, catalogue
from .course import EXERCISES, course_root
from .examiner import PartResult, examination
from .findings import part_report
from .language import VERDICTS
from .lesson import learn
from .proxy import Local, Student
from .sitting import Cell
from .student.cells import new_shell, run
from .submission import Submission, read
from .verdicts import Broken, Verdict

OUTPUT_LIMIT = 65536
NOTHING_SAID = {"en": "", "zh": ""}


def notebook_of(exercise: Exercise, root: Path | None = None) -> Path:
    return (root or course_root()) / EXERCISES / exercise.name / f"{exercise.name}.ipynb"


def namespace_of(cells: list[Cell]) -> tuple[dict, list[str]]:
    """Run the cells here; returns what they define, and what they raised."""
    shell = new_shell()
    shell.reset(new_session=True)
    raised = []
    for cell in cells:
        error = run(shell, cell.source, OUTPUT_LIMIT, cell.name)["value"]["error"]
        if error:
            raised.append(f"{cell.name}: {error['kind']}: {error['text']}")
    return shell.user_ns, raised


def examine_file(exercise: Exercise, path: Path, salt: str = "") -> tuple[list[PartResult], list[str]]:
    """The results of a trusted notebook or script, part by part, and what its cells raised."""
    namespace, raised = _namespace_in(exercise, path)
    return examination(exercise).examine(Student(Local(namespace)), salt), raised


def _namespace_in(exercise: Exercise, path: Path) -> tuple[dict, list[str]]:
    cells, _ = read(Submission("", exercise.name, path), exercise)
    return namespace_of([cell for cell in cells if not cell.source.lstrip().startswith(("check(", "hint("))])


def check_notebooks(exercises: list[Exercise], lang: str, console: Console, root: Path | None = None) -> None:
    """Check each notebook and print what is right, what is wrong and which mistake it is."""
    for exercise in exercises:
        path = notebook_of(exercise, root)
        console.rule(f"{exercise.name} · {exercise.title[lang]}")
        try:
            namespace, raised = _namespace_in(exercise, path)
            parts = [learn(exercise, part, namespace) for part in exercise.parts]
        except Broken as unreadable:
            raised = [f"{path}: {unreadable.message[lang]}"]
            parts = [part_report(p, 0.0, Verdict.MISSING, None, NOTHING_SAID, []) for p in exercise.parts]
        for line in raised:
            console.print(line, markup=False)
        for part in parts:
            _tell(part, lang, console)
        score = sum(part["score"] for part in parts)
        console.print(f"{score:g}/{exercise.points}")
        if score == exercise.points:
            console.print(f"\n{card.afterwards_text(parts[-1], lang)}", markup=False)
        console.print()


def _tell(part: dict, lang: str, console: Console) -> None:
    if part["verdict"] in ("pass", "missing"):
        mark = "✓" if part["verdict"] == "pass" else "·"
        console.print(f"{mark} {part['id']}: {VERDICTS[part['verdict']][lang]}", markup=False)
    else:
        console.print(card.text(part, lang), markup=False)


def progress_table(lang: str, console: Console) -> None:
    """Every exercise with what is done, what is open and which mistakes are still to be overcome. Names are never cut."""
    zh = lang == "zh"
    name = Column("练习" if zh else "exercise", no_wrap=True, min_width=max(map(len, catalogue())))
    table = Table("", name, Column("标题" if zh else "title", overflow="fold"), "完成" if zh else "done",
                  "分" if zh else "points", Column("未克服的错误" if zh else "mistakes to overcome", overflow="fold"),
                  box=box.HEAVY_HEAD if console.is_terminal else None)  # fmt: skip
    known = progress.load()
    for exercise in catalogue().values():
        entries = [known.get(exercise.name, {}).get(part.name) for part in exercise.parts]
        entries = [entry for entry in entries if entry]
        right = sum(entry["verdict"] == "pass" for entry in entries)
        met = sum(mistake["overcome"] is None for entry in entries for mistake in entry["mistakes"].values())
        mark = "✓" if right == len(exercise.parts) else "…" if entries else " "
        points = f"{sum(entry['score'] for entry in entries):g}/{exercise.points}"
        table.add_row(
            mark, exercise.name, exercise.title[lang], f"{right}/{len(exercise.parts)}", points, str(met or "")
        )
    console.print(table)
    if progress.place() is not None:
        console.print(f"{'进度保存在' if zh else 'progress is kept in'} {progress.place()}", markup=False)


def first_open(exercises: list[Exercise]) -> Exercise | None:
    """Where one left off: the exercise checked last if it is not done, else the first that is not."""
    known = progress.load()

    def done(exercise):
        return all(known.get(exercise.name, {}).get(p.name, {}).get("verdict") == "pass" for p in exercise.parts)

    def last_checked(exercise):
        return max((entry["checked"] or "" for entry in known.get(exercise.name, {}).values()), default="")

    still_open = [exercise for exercise in exercises if not done(exercise)]
    recent = max(still_open, key=last_checked, default=None)
    return recent if recent is not None and last_checked(recent) else next(iter(still_open), None)
