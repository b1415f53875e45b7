"""The command line: `python -m autograder COMMAND`."""

import sys
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from .arguments import parser
from .catalogue import Exercise, catalogue, find
from .language import VERDICTS, preferred
from .told import InputError, Told, Unfinished

DONE, FAULT, BAD_INPUT, UNFINISHED = 0, 1, 2, 3
PLAIN_WIDTH = 120
RELEASE = {
    "current": {"en": "up to date", "zh": "与解答一致"},
    "stale": {"en": "differs from its solution", "zh": "与解答不一致"},
    "released": {"en": "released", "zh": "已生成"},
    "unchanged": {"en": "unchanged", "zh": "没有变化"},
}


def main(arguments: list[str] | None = None) -> int:
    # Below nbformat, jsonschema would compile grammars of addresses that no notebook holds, which takes a second.
    sys.modules.setdefault("rfc3987_syntax", None)
    args = parser(COMMANDS, arguments).parse_args(arguments)
    args.lang = preferred(args.lang)
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    try:
        return args.run(args, console)
    except Told as told:
        return _ended(told, args.lang)
    except KeyboardInterrupt:
        stopped = Unfinished("stopped; run the same command to go on", "已停止；再次运行同一命令即可继续")
        return _ended(stopped, args.lang)


def _ended(told: Told, lang: str) -> int:
    """Say why, and with which status the command ends."""
    print(f"autograder: {told.message[lang]}", file=sys.stderr)  # noqa: T201
    return BAD_INPUT if isinstance(told, InputError) else UNFINISHED


def _exercises(names: list[str]) -> list[Exercise]:
    try:
        return [find(name) for name in names] or list(catalogue().values())
    except LookupError as unknown:
        name, names = unknown.args[0], ", ".join(catalogue())
        raise InputError(
            f"no exercise is called {name!r}; there are {names}", f"没有叫 {name!r} 的练习；有的是 {names}"
        ) from None


def run_list(args, console) -> int:
    """Every exercise with what it is worth, and its parts below it. Names are never cut: they are there to be typed."""
    zh = args.lang == "zh"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("练习与部分" if zh else "exercise and parts", no_wrap=True, overflow="fold")
    table.add_column("标题" if zh else "title", overflow="fold")
    table.add_column("分" if zh else "points", justify="right")
    table.add_column("分钟" if zh else "min", justify="right")
    table.add_column("难度" if zh else "level", no_wrap=True)
    for exercise in catalogue().values():
        minutes = sum(part.minutes for part in exercise.parts)
        table.add_row(exercise.name, exercise.title[args.lang], f"{exercise.points:g}", str(minutes), style="bold")
        for part in exercise.parts:
            table.add_row(f"  {part.name}", "", f"{part.points:g}", str(part.minutes), "★" * part.difficulty)
    console.print(table)
    return DONE


def run_grade(args, console) -> int:
    from .zygote import shared

    if args.device == "cpu" and args.dask is None and sys.platform.startswith("linux"):
        shared()  # it gets ready while we do
    from .classrun import Options, run
    from .device import resolve

    options = Options(args.folder, args.out, args.jobs, resolve(args.device), args.db, args.fresh,
                      args.trust_submissions, args.lang, dask=args.dask)  # fmt: skip
    try:
        with _progress(console, args.lang) as progress:
            results = run(options, progress, lambda text: console.print(text, markup=False))
    except OSError as refused:
        raise Unfinished(
            f"{refused}. The marks given so far are kept; mend it and run the same command to go on",
            f"{refused}。已给出的分数都已保存；排除问题后再次运行同一命令即可继续",
        ) from None
    counts = {v: sum(r["verdict"] == v for r in results) for v in VERDICTS}
    told = [f"{VERDICTS[v][args.lang]} {n}" for v, n in counts.items() if n]
    page = args.out / "class.html"
    said = {
        "en": f"{len(results)} submission{'s' * (len(results) != 1)}: {', '.join(told)}\nresults: {page}",
        "zh": f"{len(results)} 份提交：{'，'.join(told)}\n结果：{page}",
    }
    console.print(said[args.lang], markup=False)
    return UNFINISHED if counts["grader_error"] else DONE


@contextmanager
def _progress(console, lang):
    """What to call with each result: it moves a bar on a terminal, and prints a line elsewhere."""

    def line(result, total):
        mistakes = ", ".join(part["mistake"] for part in result["parts"] if part["mistake"])
        text = f"{result['student']}/{result['exercise']}: {result['score']:g}/{result['max_score']:g} "
        verdict = VERDICTS[result["verdict"]]["zh"] if lang == "zh" else result["verdict"]
        console.print(text + verdict + (f" ({mistakes})" if mistakes else ""), markup=False)

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
    from .selfcheck import check_notebooks, progress_table
    from .watch import watch

    exercises = _exercises(args.exercise)
    if args.watch:
        watch(exercises, args.lang, console)
    else:
        check_notebooks(exercises, args.lang, console)
        progress_table(args.lang, console)
    return DONE


def _write_progress(args, console) -> int:
    from .progresspage import page

    try:
        args.html.write_text(page(args.lang), encoding="utf-8")
    except OSError as refused:
        raise InputError(
            f"{args.html}: {refused.strerror}. Choose another place: --html FILE",
            f"{args.html}：无法写入（{refused.strerror}）。请换一个位置：--html FILE",
        ) from None
    console.print(f"{'进度：' if args.lang == 'zh' else 'your progress: '}{args.html}", markup=False)
    return DONE


def run_release(args, console) -> int:
    from .course import course_root
    from .release import ReleaseError, is_current, release

    try:
        root = course_root()
        faults = 0
        for exercise in _exercises(args.exercise):
            if args.check:
                current = is_current(exercise, root)
                faults += not current
                said = "current" if current else "stale"
            else:
                changed = release(exercise, root)
                said = "released" if changed else "unchanged"
            console.print(f"exercises/{exercise.name}: {RELEASE[said][args.lang]}")
    except ReleaseError as refused:
        status = _ended(refused, args.lang)
        return FAULT if args.check else status
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
    "doctor": run_doctor,
    "bench": run_bench,
}
