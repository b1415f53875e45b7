"""The command line: `python -m autograder COMMAND`."""

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from .arguments import parser
from .catalogue import Exercise, catalogue, find
from .errors import InputError, Unfinished, UserError
from .language import Text, preferred
from .verdicts import VERDICT_WORDS, Verdict

if TYPE_CHECKING:
    from .results import SubmissionReport

DONE, FAULT, BAD_INPUT, UNFINISHED = 0, 1, 2, 3
PLAIN_WIDTH = 120
CURRENT, STALE = Text("up to date", "与解答一致"), Text("differs from its solution", "与解答不一致")
RELEASED, UNCHANGED = Text("released", "已生成"), Text("unchanged", "没有变化")
RECORDED = Text("recorded", "已记录")


def main(arguments: list[str] | None = None) -> int:
    # nbformat imports jsonschema, which would spend a second on loading a URL grammar that no notebook needs.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    args = parser(COMMANDS, arguments).parse_args(arguments)
    args.lang = preferred(args.lang)
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    try:
        status: int = args.run(args, console)
        return status
    except UserError as error:
        return _ended(error, args.lang)
    except KeyboardInterrupt:
        stopped = Unfinished("stopped; run the same command to go on", "已停止；再次运行同一命令即可继续")
        return _ended(stopped, args.lang)


def _ended(error: UserError, lang: str) -> int:
    """Print the error and return the exit status."""
    print(f"autograder: {error.message[lang]}", file=sys.stderr)  # noqa: T201
    return BAD_INPUT if isinstance(error, InputError) else UNFINISHED


def _exercises(names: list[str]) -> list[Exercise]:
    try:
        return [find(name) for name in names] or list(catalogue().values())
    except LookupError as unknown:
        name, known = unknown.args[0], ", ".join(catalogue())
        raise InputError(
            f"no exercise is called {name!r}; there are {known}", f"没有叫 {name!r} 的练习；有的是 {known}"
        ) from None


def run_list(args: Namespace, console: Console) -> int:
    """List every exercise with its points, and its parts below it. Names are never cut, because users type them."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(Text("exercise and parts", "练习与部分")[args.lang], no_wrap=True, overflow="fold")
    table.add_column(Text("title", "标题")[args.lang], overflow="fold")
    table.add_column(Text("points", "分")[args.lang], justify="right")
    table.add_column(Text("min", "分钟")[args.lang], justify="right")
    table.add_column(Text("level", "难度")[args.lang], no_wrap=True)
    for exercise in catalogue().values():
        minutes = sum(part.minutes for part in exercise.parts)
        table.add_row(exercise.name, exercise.title[args.lang], f"{exercise.points:g}", str(minutes), style="bold")
        for part in exercise.parts:
            table.add_row(f"  {part.name}", "", f"{part.points:g}", str(part.minutes), "★" * part.difficulty)
    console.print(table)
    return DONE


def run_grade(args: Namespace, console: Console) -> int:
    from .isolation.zygote import shared

    if args.device == "cpu" and args.dask is None and sys.platform.startswith("linux"):
        shared()  # start it first: it imports torch while this process imports the rest
    from .grading.run import Options, run
    from .isolation.device import resolve

    options = Options(
        folder=args.folder,
        out=args.out,
        jobs=args.jobs,
        device=resolve(args.device),
        db=args.db,
        fresh=args.fresh,
        trust_submissions=args.trust_submissions,
        lang=args.lang,
        dask=args.dask,
    )
    try:
        with _progress(console, args.lang) as progress:
            reports = run(options, progress, lambda text: console.print(text, markup=False))
    except OSError as refused:
        raise Unfinished(
            f"{refused}. The marks given so far are kept; solve this and run the same command to go on",
            f"{refused}。已给出的分数都已保存；排除问题后再次运行同一命令即可继续",
        ) from None
    counts = {verdict: sum(report.verdict is verdict for report in reports) for verdict in VERDICT_WORDS}
    shown = [f"{VERDICT_WORDS[verdict][args.lang]} {count}" for verdict, count in counts.items() if count]
    page, noun = args.out / "class.html", "submission" if len(reports) == 1 else "submissions"
    summary = Text(
        f"{len(reports)} {noun}: {', '.join(shown)}\nresults: {page}",
        f"{len(reports)} 份提交：{'，'.join(shown)}\n结果：{page}",
    )
    console.print(summary[args.lang], markup=False)
    return UNFINISHED if counts[Verdict.GRADER_ERROR] else DONE


@contextmanager
def _progress(console: Console, lang: str) -> "Iterator[Callable[[SubmissionReport, int], None]]":
    """Yield a function to call with each report. On a terminal it moves a bar, elsewhere it prints a line."""

    def line(report: "SubmissionReport", total: int) -> None:
        mistakes = ", ".join(part.mistake.name for part in report.parts if part.mistake)
        text = f"{report.student}/{report.exercise}: {report.score:g}/{report.max_score:g} "
        verdict = Text(str(report.verdict), VERDICT_WORDS[report.verdict].zh)[lang]
        console.print(text + verdict + (f" ({mistakes})" if mistakes else ""), markup=False)

    if not console.is_terminal:
        yield line
        return
    rate, name = TextColumn("{task.fields[rate]}"), TextColumn("{task.description}", markup=False)
    with Progress(BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn(), name, console=console) as bar:
        task = bar.add_task("", total=None, rate="")

        def advance(report: "SubmissionReport", total: int) -> None:
            bar.update(task, advance=1, total=total, description=f"{report.student}/{report.exercise}")
            speed = bar.tasks[task].speed
            bar.update(task, rate=f"{speed:.1f}/s" if speed else "")

        yield advance


def run_check(args: Namespace, console: Console) -> int:
    if args.html is not None:
        return _write_progress(args, console)
    from .learner.check_files import check_notebooks, progress_table
    from .learner.watch import watch

    exercises = _exercises(args.exercise)
    if args.watch:
        watch(exercises, args.lang, console)
    else:
        check_notebooks(exercises, args.lang, console)
        progress_table(args.lang, console)
    return DONE


def _write_progress(args: Namespace, console: Console) -> int:
    from .learner.progress_page import page

    try:
        args.html.write_text(page(args.lang), encoding="utf-8")
    except OSError as refused:
        raise InputError(
            f"{args.html}: {refused.strerror}. Choose another place: --html FILE",
            f"{args.html}：无法写入（{refused.strerror}）。请换一个位置：--html FILE",
        ) from None
    console.print(f"{Text('your progress: ', '进度：')[args.lang]}{args.html}", markup=False)
    return DONE


def run_release(args: Namespace, console: Console) -> int:
    from .course import course_root
    from .gradebook.release import ReleaseError, is_current, release

    try:
        root = course_root()
        faults = 0
        for exercise in _exercises(args.exercise):
            if args.check:
                current = is_current(exercise, root)
                faults += not current
                state = CURRENT if current else STALE
            else:
                changed = release(exercise, root)
                state = RELEASED if changed else UNCHANGED
            console.print(f"exercises/{exercise.name}: {state[args.lang]}")
    except ReleaseError as refused:
        status = _ended(refused, args.lang)
        return FAULT if args.check else status
    return FAULT if faults else DONE


def run_audit(args: Namespace, console: Console) -> int:
    if args.mutants:
        return _audit_mutants(args, console)
    if args.sample:
        raise InputError("--sample is a sample of mutants: add --mutants", "--sample 抽取的是变体：请加上 --mutants")
    from .checks.audit import audit

    return DONE if audit(_exercises(args.exercise), console) else FAULT


def _audit_mutants(args: Namespace, console: Console) -> int:
    from .checks.mutants import Sample, audit_mutants

    sample = Sample(args.sample, args.seed) if args.sample else None
    return DONE if audit_mutants(_exercises(args.exercise), console, sample) else FAULT


def run_record(args: Namespace, console: Console) -> int:
    if args.what == "translation":
        return _record_translations(args, console)
    from .checks.record import record

    for exercise in _exercises(args.name):
        console.print(f"{exercise.name}: {(RECORDED if record(exercise) else UNCHANGED)[args.lang]}")
    return DONE


def _record_translations(args: Namespace, console: Console) -> int:
    from .checks.translations import accept, listed
    from .course import course_root

    root = course_root()
    pages = listed(root)
    for name in args.name or pages:
        if name not in pages:
            raise InputError(
                f"no page is called {name!r}; there are {', '.join(pages)}",
                f"没有叫 {name!r} 的页面；有的是 {', '.join(pages)}",
            )
        console.print(f"{name}: {(RECORDED if accept(root, name) else UNCHANGED)[args.lang]}")
    return DONE


def run_doctor(args: Namespace, console: Console) -> int:
    from .checks.doctor import examine_machine

    return examine_machine(console, args.lang)


def run_bench(args: Namespace, console: Console) -> int:
    from .benchmarks import BENCHMARKS, bench

    if unknown := [name for name in args.name if name not in BENCHMARKS]:
        name, names = unknown[0], ", ".join(BENCHMARKS)
        raise InputError(
            f"no benchmark is called {name!r}; there are {names}", f"没有叫 {name!r} 的测试；有的是 {names}"
        )
    bench(args.name or list(BENCHMARKS), console, args.json, args.submissions)
    return DONE


COMMANDS = {
    "list": run_list,
    "check": run_check,
    "grade": run_grade,
    "release": run_release,
    "audit": run_audit,
    "record": run_record,
    "doctor": run_doctor,
    "bench": run_bench,
}
