"""The command line: `python -m autograder COMMAND`."""

import argparse
import os
import sys
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from .catalogue import CatalogueError, Exercise, catalogue, find
from .language import VERDICTS, preferred

DONE, FAULT, BAD_INPUT, UNFINISHED = 0, 1, 2, 3
PLAIN_WIDTH = 120


class WrongUse(Exception):
    """The command line cannot be carried out; the message says what to do."""


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(arguments)
    args.lang = preferred(args.lang)
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    try:
        return args.run(args, console)
    except WrongUse as wrong:
        print(f"autograder: {wrong}", file=sys.stderr)  # noqa: T201
        return BAD_INPUT
    except CatalogueError as broken:
        print(f"autograder: catalogue.toml: {broken}", file=sys.stderr)  # noqa: T201
        return UNFINISHED
    except KeyboardInterrupt:
        stopped = {"en": "stopped; run the same command to go on", "zh": "已停止；再次运行同一命令即可继续"}
        print(f"autograder: {stopped[args.lang]}", file=sys.stderr)  # noqa: T201
        return UNFINISHED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="autograder", description="Attention by Hand · 手写注意力")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name, run, help):
        sub = commands.add_parser(name, help=help, description=help)
        sub.add_argument("--lang", choices=("en", "zh"), help="language of the messages (default: the locale)")
        sub.set_defaults(run=run)
        return sub

    command("list", run_list, "show the exercises · 列出练习")
    check = command("check", run_check, "check your own notebooks in exercises/ · 检查自己的 notebook")
    check.add_argument("exercise", nargs="*", help="such as 06_masks (default: all)")
    check.add_argument("--watch", action="store_true", help="check again whenever a notebook is saved · 保存即检查")
    check.add_argument(
        "--html", type=Path, nargs="?", const=Path("progress.html"), metavar="FILE",
        help="only write your progress as a page to keep (default: progress.html) · 把进度写成网页",
    )  # fmt: skip
    grade = command("grade", run_grade, "grade a folder of submissions · 批量评分")
    grade.add_argument(
        "folder",
        type=Path,
        help="FOLDER/<student>/<exercise>/<exercise>.ipynb (or .py), an archive from nbgrader, Moodle or Canvas, or one file",
    )
    grade.add_argument("--out", type=Path, default=Path("grades"), help="where results go (default: grades)")
    grade.add_argument("--jobs", type=_positive, default=_cores(), help="submissions at a time (default: all cores)")
    grade.add_argument("--device", choices=("cpu", "cuda", "mps", "auto"), default="cpu")
    grade.add_argument(
        "--db",
        default="sqlite:///gradebook.db",
        help="nbgrader's gradebook (default: gradebook.db here; postgresql://… too)",
    )
    grade.add_argument("--dask", metavar="ADDRESS", help="grade on a Dask cluster, such as tcp://scheduler:8786")
    grade.add_argument("--fresh", action="store_true", help="grade again what was graded already")
    grade.add_argument("--trust-submissions", action="store_true", help="grade although the sandbox is incomplete")
    release = command("release", run_release, "make exercises/ from solutions/ · 由 solutions 生成 exercises")
    release.add_argument("exercise", nargs="*", help="such as 06_masks (default: all)")
    release.add_argument("--check", action="store_true", help="only compare, exit 1 when they differ")
    audit = command("audit", run_audit, "prove that the course is sound · 证明课程无误")
    audit.add_argument("exercise", nargs="*", help="such as 06_masks (default: all)")
    command("doctor", run_doctor, "test the sandbox, the device and the versions · 检查沙箱、设备与版本")
    bench = command("bench", run_bench, "measure speed as ratios in one run · 速度测试")
    bench.add_argument("name", nargs="*", help="which benchmarks (default: all)")
    bench.add_argument("--submissions", type=_positive, default=200, help="how many to grade (default: 200)")
    bench.add_argument("--json", type=Path, help="where the numbers go (default: _build/bench/bench.json)")
    return parser


def _cores() -> int:
    """Those this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _exercises(names: list[str]) -> list[Exercise]:
    try:
        return [find(name) for name in names] or list(catalogue().values())
    except LookupError as unknown:
        raise WrongUse(f"no exercise is called {unknown.args[0]!r}; there are {', '.join(catalogue())}") from None


def run_list(args, console) -> int:
    zh = args.lang == "zh"
    table = Table("练习" if zh else "exercise", "标题" if zh else "title", "部分" if zh else "part",
                  "分" if zh else "points", "分钟" if zh else "minutes", "难度" if zh else "difficulty",
                  box=box.HEAVY_HEAD if console.is_terminal else None)  # fmt: skip
    for exercise in catalogue().values():
        for i, part in enumerate(exercise.parts):
            first = (exercise.name, exercise.title[args.lang]) if i == 0 else ("", "")
            table.add_row(*first, part.name, str(part.points), str(part.minutes), "★" * part.difficulty)
        table.add_section()
    console.print(table)
    return DONE


def run_grade(args, console) -> int:
    from .zygote import ZygoteError, shared

    if args.device == "cpu" and args.dask is None and sys.platform.startswith("linux"):
        shared()  # it gets ready while we do
    from .classrun import Options, run
    from .device import resolve
    from .submission import InputError
    from .trust import UntrustedMachine
    from .unfinished import Unfinished
    from .work import UnsoundGrader

    options = Options(args.folder, args.out, args.jobs, resolve(args.device), args.db, args.fresh,
                      args.trust_submissions, args.lang, dask=args.dask)  # fmt: skip
    try:
        with _progress(console) as progress:
            results = run(options, progress, lambda text: console.print(text, markup=False))
    except InputError as unusable:
        raise WrongUse(str(unusable)) from None
    except Unfinished as stopped:
        return _unfinished(stopped.message[args.lang])
    except (UntrustedMachine, UnsoundGrader, ZygoteError) as refused:
        return _unfinished(refused)
    except OSError as refused:
        stopped = {
            "en": f"{refused}. The marks given so far are kept; mend it and run the same command to go on",
            "zh": f"{refused}。已给出的分数都已保存；排除问题后再次运行同一命令即可继续",
        }
        return _unfinished(stopped[args.lang])
    counts = {v: sum(r["verdict"] == v for r in results) for v in VERDICTS}
    summary = ", ".join(f"{VERDICTS[v][args.lang]} {n}" for v, n in counts.items() if n)
    console.print(f"{len(results)} {'份提交' if args.lang == 'zh' else 'submissions'}: {summary}")
    console.print(f"{'结果' if args.lang == 'zh' else 'results'}: {args.out / 'class.html'}", markup=False)
    return UNFINISHED if counts["grader_error"] else DONE


def _unfinished(reason) -> int:
    print(f"autograder: {reason}", file=sys.stderr)  # noqa: T201
    return UNFINISHED


@contextmanager
def _progress(console):
    """What to call with each result: it moves a bar on a terminal, and prints a line elsewhere."""

    def line(result, total):
        mistakes = ", ".join(part["mistake"] for part in result["parts"] if part["mistake"])
        text = f"{result['student']}/{result['exercise']}: {result['score']:g}/{result['max_score']:g} "
        console.print(text + result["verdict"] + (f" ({mistakes})" if mistakes else ""), markup=False)

    if not console.is_terminal:
        yield line
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
               TextColumn("{task.description}", markup=False))  # fmt: skip
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=None, rate="")

        def advance(result, total):
            bar.update(task, advance=1, total=total, description=f"{result['student']}/{result['exercise']}")
            speed = bar.tasks[task].speed
            bar.update(task, rate=f"{speed:.1f}/s" if speed else "")

        yield advance


def run_check(args, console) -> int:
    if args.html is not None:
        return _write_progress(args, console)
    from .release import ReleaseError
    from .selfcheck import check_notebooks, progress_table
    from .watch import watch

    exercises = _exercises(args.exercise)
    try:
        if args.watch:
            watch(exercises, args.lang, console)
        else:
            check_notebooks(exercises, args.lang, console)
            progress_table(args.lang, console)
    except ReleaseError as no_course:
        raise WrongUse(str(no_course)) from None
    return DONE


def _write_progress(args, console) -> int:
    from .progresspage import page

    try:
        args.html.write_text(page(args.lang), encoding="utf-8")
    except OSError as refused:
        raise WrongUse(f"{args.html}: {refused.strerror}") from None
    console.print(f"{'进度' if args.lang == 'zh' else 'your progress'}: {args.html}", markup=False)
    return DONE


def run_release(args, console) -> int:
    from .release import ReleaseError, course_root, is_current, release

    try:
        root = course_root()
        faults = 0
        for exercise in _exercises(args.exercise):
            if args.check:
                current = is_current(exercise, root)
                faults += not current
                console.print(f"exercises/{exercise.name}: {'up to date' if current else 'differs from its solution'}")
            else:
                changed = release(exercise, root)
                console.print(f"exercises/{exercise.name}: {'released' if changed else 'unchanged'}")
    except ReleaseError as refused:
        print(f"autograder: {refused}", file=sys.stderr)  # noqa: T201
        return FAULT if args.check else UNFINISHED
    return FAULT if faults else DONE


def run_audit(args, console) -> int:
    from .audit import audit

    return DONE if audit(_exercises(args.exercise), console) else FAULT


def run_doctor(args, console) -> int:
    from .doctor import examine_machine

    return examine_machine(console, args.lang)


def run_bench(args, console) -> int:
    from .benchmarks import BENCHMARKS, bench

    if unknown := [name for name in args.name if name not in BENCHMARKS]:
        raise WrongUse(f"no benchmark is called {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    bench(args.name or list(BENCHMARKS), console, args.json, args.submissions)
    return DONE
