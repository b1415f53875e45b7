"""Check a learner's own notebooks in this process. One's own code needs no sandbox, so this works on every system."""

from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Column, Table

from autograder.catalogue import Exercise, catalogue
from autograder.course import EXERCISES, course_root, notebook_in
from autograder.exam.examiner import PartResult, examination
from autograder.exam.proxy import Local, Student
from autograder.intake.submission import Cell, Submission, read
from autograder.language import Text
from autograder.reports import card
from autograder.results import Lesson, PartReport
from autograder.student.cells import new_shell, run
from autograder.verdicts import VERDICT_WORDS, Broken, Verdict

from . import progress
from .check_part import check_part

OUTPUT_LIMIT = 65536


def notebook_of(exercise: Exercise, root: Path | None = None) -> Path:
    return (root or course_root()) / notebook_in(EXERCISES, exercise.name)


def namespace_of(cells: list[Cell]) -> tuple[dict[str, Any], list[str]]:
    """Run the cells in this process. Returns what they define, and what they raised."""
    shell = new_shell()
    shell.reset(new_session=True)
    raised = []
    for cell in cells:
        error = run(shell, cell.source, OUTPUT_LIMIT, cell.name)["value"]["error"]
        if error:
            raised.append(f"{cell.name}: {error['kind']}: {error['text']}")
    return shell.user_ns, raised


def examine_file(exercise: Exercise, path: Path, salt: str = "") -> tuple[list[PartResult], list[str]]:
    """The results of all parts of a trusted notebook or script, and what its cells raised."""
    namespace, raised = _namespace_in(exercise, path)
    return examination(exercise).examine(Student(Local(namespace)), salt), raised


def _namespace_in(exercise: Exercise, path: Path) -> tuple[dict[str, Any], list[str]]:
    cells, _ = read(Submission("", exercise.name, path), exercise)
    return namespace_of([cell for cell in cells if not cell.source.lstrip().startswith(("check(", "hint("))])


def check_notebooks(exercises: list[Exercise], lang: str, console: Console, root: Path | None = None) -> None:
    """Check each notebook and print what is right, what is wrong and which mistake it is."""
    for exercise in exercises:
        path = notebook_of(exercise, root)
        console.rule(f"{exercise.name} · {exercise.title[lang]}")
        try:
            namespace, raised = _namespace_in(exercise, path)
            lessons = [check_part(exercise, part, namespace) for part in exercise.parts]
        except Broken as unreadable:
            raised = [f"{path}: {unreadable.message[lang]}"]
            lessons = [Lesson(PartReport(p.name, 0.0, p.points, Verdict.MISSING)) for p in exercise.parts]
        for line in raised:
            console.print(line, markup=False)
        for lesson in lessons:
            _print_lesson(lesson, lang, console)
        score = sum(lesson.report.score for lesson in lessons)
        console.print(f"{score:g}/{exercise.points}")
        if score == exercise.points:
            console.print(f"\n{card.afterwards_text(lessons[-1], lang)}", markup=False)
        console.print()


def _print_lesson(lesson: Lesson, lang: str, console: Console) -> None:
    part = lesson.report
    if part.verdict in (Verdict.PASS, Verdict.MISSING):
        mark = "✓" if part.verdict is Verdict.PASS else "·"
        console.print(f"{mark} {part.id}: {VERDICT_WORDS[part.verdict][lang]}", markup=False)
    else:
        console.print(card.text(part, lang, lesson), markup=False)


def progress_table(lang: str, console: Console) -> None:
    """Print how far each exercise is done, and how many mistakes are still to be overcome. Names are never cut."""
    table = Table(
        "",
        Column(Text("exercise", "练习")[lang], no_wrap=True, min_width=max(map(len, catalogue()))),
        Column(Text("title", "标题")[lang], overflow="fold"),
        Text("done", "完成")[lang],
        Text("points", "分")[lang],
        Column(Text("mistakes to overcome", "未克服的错误")[lang], overflow="fold"),
        box=box.HEAVY_HEAD if console.is_terminal else None,
    )
    known = progress.load()
    for exercise in catalogue().values():
        found = [known.get(exercise.name, {}).get(part.name) for part in exercise.parts]
        entries = [entry for entry in found if entry]
        right = sum(entry["verdict"] == Verdict.PASS for entry in entries)
        met = sum(mistake["overcome"] is None for entry in entries for mistake in entry["mistakes"].values())
        mark = "✓" if right == len(exercise.parts) else "…" if entries else " "
        points = f"{sum(entry['score'] for entry in entries):g}/{exercise.points}"
        table.add_row(
            mark, exercise.name, exercise.title[lang], f"{right}/{len(exercise.parts)}", points, str(met or "")
        )
    console.print(table)
    if progress.place() is not None:
        console.print(f"{Text('progress is kept in', '进度保存在')[lang]} {progress.place()}", markup=False)


def first_open(exercises: list[Exercise]) -> Exercise | None:
    """The exercise to continue with: the one checked last if it is not done, otherwise the first that is not done."""
    known = progress.load()

    def done(exercise: Exercise) -> bool:
        return all(known.get(exercise.name, {}).get(p.name, {}).get("verdict") == "pass" for p in exercise.parts)

    def last_checked(exercise: Exercise) -> str:
        return max((entry["checked"] or "" for entry in known.get(exercise.name, {}).values()), default="")

    still_open = [exercise for exercise in exercises if not done(exercise)]
    recent = max(still_open, key=last_checked, default=None)
    return recent if recent is not None and last_checked(recent) else next(iter(still_open), None)
