"""What the command line accepts, with help and errors in the user's language.

`argparse` knows English only. Its few words and error messages are translated here. After a wrong command line, one
line says what was wrong and where to read more.
"""

import argparse
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .language import LANGUAGES, Text, preferred

ERRORS = (  # messages of argparse as regular expressions, and their translations
    (r"the following arguments are required: (.*)", r"缺少 \1"),
    (r"argument (.*): invalid choice: (.*) \(choose from (.*)\)", r"\1：没有 \2，可选的有 \3"),
    (r"argument (.*): expected one argument", r"\1 后面缺少一个值"),
    (r"argument (.*): not allowed with argument (.*)", r"\1 不能与 \2 同时使用"),
    (r"unrecognized arguments: (.*)", r"不认识的参数：\1"),
    (r"ambiguous option: (.*) could match (.*)", r"\1 不明确，可能是 \2"),
    (r"argument (.*): (.*)", r"\1：\2"),
)
WHICH_LANGUAGE = Text("language of the messages (default: the locale)", "消息的语言（默认随系统）")
WHICH_EXERCISES = Text("such as 06_masks (default: all)", "例如 06_masks（默认全部）")
FOLDER = Text(
    "FOLDER/<student>/<exercise>/<exercise>.ipynb (or .py), an archive from nbgrader, Moodle or Canvas, or one file",
    "FOLDER/<学生>/<练习>/<练习>.ipynb（或 .py），nbgrader、Moodle、Canvas 导出的压缩包，或单个文件",
)
GRADEBOOK = Text(
    "nbgrader's gradebook (default: gradebook.db here; postgresql://… too)",
    "nbgrader 的成绩册（默认当前文件夹的 gradebook.db；也可以是 postgresql://…）",
)
WHAT_TO_RECORD = Text(
    "symptoms: which promises each mistake breaks; translation: a Chinese page says what its English page says",
    "symptoms：每种错误违反哪些要求；translation：中文页与英文页内容一致",
)


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` with all its words in the language `lang`."""

    def __init__(self, lang: str, **settings: Any):
        super().__init__(add_help=False, **settings)
        self.lang = lang
        self._positionals.title = Text("arguments", "参数")[lang]
        self._optionals.title = Text("options", "选项")[lang]
        self.argument("-h", "--help", action="help", help=Text("show this help and exit", "显示这份说明"))

    def argument(self, *names: str, help: Text, **settings: Any) -> None:
        """Add an argument whose help exists in both languages."""
        self.add_argument(*names, help=help[self.lang], **settings)

    def positive(self, text: str) -> int:
        """The type of an argument that is a positive whole number."""
        if not text.isdigit() or int(text) == 0:
            wrong = Text(f"{text!r} is not a whole number above 0", f"{text!r} 不是正整数")
            raise argparse.ArgumentTypeError(wrong[self.lang])
        return int(text)

    def format_usage(self) -> str:
        return self._translated(super().format_usage())

    def format_help(self) -> str:
        return self._translated(super().format_help())

    def _translated(self, text: str) -> str:
        return re.sub(r"\Ausage: ", "用法： ", text) if self.lang == "zh" else text

    def error(self, message: str) -> NoReturn:
        where = Text(f"{message}. See {self.prog} --help", f"{_in_chinese(message)}。用法见 {self.prog} --help")
        self.exit(2, f"autograder: {where[self.lang]}\n")


class Commands:
    """The commands of the whole parser, and the function that runs each of them."""

    def __init__(self, whole: Parser, functions: dict[str, Callable[..., int]]):
        self.lang, self.functions = whole.lang, functions
        self.parsers = whole.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)

    def add(self, name: str, help: Text) -> Parser:
        command = self.parsers.add_parser(name, lang=self.lang, help=help[self.lang], description=help[self.lang])
        command.argument("--lang", choices=LANGUAGES, default=argparse.SUPPRESS, help=WHICH_LANGUAGE)
        command.set_defaults(run=self.functions[name])
        return command


def parser(commands: dict[str, Callable[..., int]], arguments: Sequence[str] | None) -> argparse.ArgumentParser:
    """The parser of the whole command line; `commands` says which function runs which command."""
    whole = Parser(_language(arguments), prog="autograder", description="Attention by Hand · 手写注意力")
    whole.argument("--lang", choices=LANGUAGES, help=WHICH_LANGUAGE)
    known = Commands(whole, commands)
    known.add("list", Text("show the exercises", "列出练习"))
    _add_check(known)
    _add_grade(known)
    _add_release(known)
    _add_audit(known)
    record = known.add("record", Text("write down what an author has checked", "记录作者核对过的内容"))
    record.argument("what", choices=("symptoms", "translation"), help=WHAT_TO_RECORD)
    record.argument("name", nargs="*", help=WHICH_EXERCISES)
    known.add("doctor", Text("test the sandbox, the device and the versions", "检查沙箱、设备与版本"))
    _add_bench(known)
    return whole


def _add_check(commands: Commands) -> None:
    check = commands.add("check", Text("check your own notebooks in exercises/", "检查自己在 exercises/ 里的 notebook"))
    again = Text("check again whenever a notebook is saved", "每次保存 notebook 就重新检查")
    page = Text(
        "only write your progress as a page to keep (default: progress.html)",
        "只把进度写成可以留存的网页（默认 progress.html）",
    )
    check.argument("exercise", nargs="*", help=WHICH_EXERCISES)
    check.argument("--watch", action="store_true", help=again)
    check.argument("--html", type=Path, nargs="?", const=Path("progress.html"), metavar="FILE", help=page)


def _add_grade(commands: Commands) -> None:
    grade = commands.add("grade", Text("grade a folder of submissions", "批量评分"))
    out = Text("where results go (default: grades)", "结果放在哪里（默认 grades）")
    jobs = Text("submissions at a time (default: all cores)", "同时评多少份（默认用满所有核）")
    device = Text("where to compute (default: cpu)", "在哪里计算（默认 cpu）")
    dask = Text(
        "grade on a Dask cluster, such as tcp://scheduler:8786", "在 Dask 集群上评分，例如 tcp://scheduler:8786"
    )
    fresh = Text("grade again what was graded already", "已评过的也重新评")
    trust = Text("grade although the sandbox is incomplete", "即使沙箱不完整也评分")
    grade.argument("folder", type=Path, metavar="FOLDER", help=FOLDER)
    grade.argument("--out", type=Path, default=Path("grades"), metavar="DIR", help=out)
    grade.argument("--jobs", type=grade.positive, default=_cores(), metavar="N", help=jobs)
    grade.argument("--device", choices=("cpu", "cuda", "mps", "auto"), default="cpu", help=device)
    grade.argument("--db", default="sqlite:///gradebook.db", metavar="URL", help=GRADEBOOK)
    grade.argument("--dask", metavar="ADDRESS", help=dask)
    grade.argument("--fresh", action="store_true", help=fresh)
    grade.argument("--trust-submissions", action="store_true", help=trust)


def _add_release(commands: Commands) -> None:
    release = commands.add("release", Text("make exercises/ from solutions/", "由 solutions/ 生成 exercises/"))
    check = Text("only compare, exit 1 when they differ", "只比较，有差异则以 1 退出")
    release.argument("exercise", nargs="*", help=WHICH_EXERCISES)
    release.argument("--check", action="store_true", help=check)


def _add_audit(commands: Commands) -> None:
    audit = commands.add("audit", Text("prove that the course is sound", "证明课程无误"))
    mutants = Text(
        "change right answers in one place each, and list the changes that no test notices",
        "把正确答案逐处改动，列出没有测试能发现的改动",
    )
    sample = Text("draw N mutants of each exercise (default: all)", "每个练习抽取 N 个变体（默认全部）")
    seed = Text("what the draw depends on (default: 0)", "抽取所用的种子（默认 0）")
    audit.argument("exercise", nargs="*", help=WHICH_EXERCISES)
    audit.argument("--mutants", action="store_true", help=mutants)
    audit.argument("--sample", type=audit.positive, metavar="N", help=sample)
    audit.argument("--seed", default="0", metavar="S", help=seed)


def _add_bench(commands: Commands) -> None:
    bench = commands.add("bench", Text("measure speed as ratios in one run", "测量速度，给出同一次运行中的比值"))
    which = Text("which benchmarks (default: all)", "哪些测试（默认全部）")
    number = Text("how many to grade (default: 200)", "评多少份（默认 200）")
    place = Text(
        "where the numbers go (default: _build/bench/bench.json)", "数字写到哪里（默认 _build/bench/bench.json）"
    )
    bench.argument("name", nargs="*", help=which)
    bench.argument("--submissions", type=bench.positive, default=200, metavar="N", help=number)
    bench.argument("--json", type=Path, metavar="FILE", help=place)


def _language(arguments: Sequence[str] | None) -> str:
    """The language of the command line. `--lang` is read before the rest, because errors must use it too."""
    early = argparse.ArgumentParser(add_help=False)
    early.add_argument("--lang", nargs="?")  # without a value, the whole parser reports the error
    return preferred(early.parse_known_args(arguments)[0].lang)


def _in_chinese(message: str) -> str:
    for english, chinese in ERRORS:
        if found := re.fullmatch(english, message):
            return found.expand(chinese)
    return message


def _cores() -> int:
    """How many cores this process may use, or how many there are if the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
