"""What the command line understands, explained in the language of whoever types it.

`argparse` speaks English only. Its few words and complaints are given here in Chinese too, and a wrong command line is
answered in one line that says what was wrong and where to read more.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .language import LANGUAGES, Text, preferred

COMPLAINTS = (  # what argparse says, and the same in Chinese
    (r"the following arguments are required: (.*)", r"缺少 \1"),
    (r"argument (.*): invalid choice: (.*) \(choose from (.*)\)", r"\1：没有 \2，可选的有 \3"),
    (r"argument (.*): expected one argument", r"\1 后面缺少一个值"),
    (r"argument (.*): not allowed with argument (.*)", r"\1 不能与 \2 同时使用"),
    (r"unrecognized arguments: (.*)", r"不认识的参数：\1"),
    (r"ambiguous option: (.*) could match (.*)", r"\1 不明确，可能是 \2"),
    (r"argument (.*): (.*)", r"\1：\2"),
)


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that speaks `lang`."""

    lang = "en"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, add_help=False, **kwargs)
        self._positionals.title = Text("arguments", "参数")[self.lang]
        self._optionals.title = Text("options", "选项")[self.lang]
        about = Text("show this help and exit", "显示这份说明")[self.lang]
        self.add_argument("-h", "--help", action="help", help=about)

    def format_usage(self) -> str:
        return self._spoken(super().format_usage())

    def format_help(self) -> str:
        return self._spoken(super().format_help())

    def _spoken(self, text: str) -> str:
        return re.sub(r"\Ausage: ", "用法： ", text) if self.lang == "zh" else text

    def error(self, message: str) -> NoReturn:
        if self.lang == "zh":
            said, words = next((pair for pair in COMPLAINTS if re.fullmatch(pair[0], message)), ("(.*)", r"\1"))
            message = re.sub(said, words, message, count=1) + f"。用法见 {self.prog} --help"
        else:
            message += f". See {self.prog} --help"
        self.exit(2, f"autograder: {message}\n")


def parser(commands: dict[str, Callable[..., int]], arguments: Sequence[str] | None) -> argparse.ArgumentParser:
    """The parser of the whole command line; `commands` says which function runs which command."""
    lang = preferred(_asked(sys.argv[1:] if arguments is None else arguments))
    speaking = type("Speaking", (Parser,), {"lang": lang})

    def say(en: str, zh: str) -> str:
        return Text(en, zh)[lang]

    whole = speaking(prog="autograder", description="Attention by Hand · 手写注意力")
    which = say("language of the messages (default: the locale)", "消息的语言（默认随系统）")
    whole.add_argument("--lang", choices=LANGUAGES, help=which)
    found = whole.add_subparsers(required=True, metavar="COMMAND", parser_class=speaking)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        sub = found.add_parser(name, help=help, description=help)
        sub.add_argument("--lang", choices=LANGUAGES, default=argparse.SUPPRESS, help=which)
        sub.set_defaults(run=commands[name])
        return sub

    some = say("such as 06_masks (default: all)", "例如 06_masks（默认全部）")
    command("list", say("show the exercises", "列出练习"))

    check = command("check", say("check your own notebooks in exercises/", "检查自己在 exercises/ 里的 notebook"))
    check.add_argument("exercise", nargs="*", help=some)
    check.add_argument("--watch", action="store_true",
                       help=say("check again whenever a notebook is saved", "每次保存 notebook 就重新检查"))  # fmt: skip
    check.add_argument("--html", type=Path, nargs="?", const=Path("progress.html"), metavar="FILE",
                       help=say("only write your progress as a page to keep (default: progress.html)",
                                "只把进度写成可以留存的网页（默认 progress.html）"))  # fmt: skip

    grade = command("grade", say("grade a folder of submissions", "批量评分"))
    grade.add_argument("folder", type=Path, metavar="FOLDER",
                       help=say("FOLDER/<student>/<exercise>/<exercise>.ipynb (or .py), an archive from nbgrader, Moodle or "
                                "Canvas, or one file",
                                "FOLDER/<学生>/<练习>/<练习>.ipynb（或 .py），nbgrader、Moodle、Canvas 导出的压缩包，"
                                "或单个文件"))  # fmt: skip
    grade.add_argument("--out", type=Path, default=Path("grades"), metavar="DIR",
                       help=say("where results go (default: grades)", "结果放在哪里（默认 grades）"))  # fmt: skip
    grade.add_argument("--jobs", type=_above_zero(say), default=_cores(), metavar="N",
                       help=say("submissions at a time (default: all cores)", "同时评多少份（默认用满所有核）"))  # fmt: skip
    grade.add_argument("--device", choices=("cpu", "cuda", "mps", "auto"), default="cpu",
                       help=say("where to compute (default: cpu)", "在哪里计算（默认 cpu）"))  # fmt: skip
    grade.add_argument("--db", default="sqlite:///gradebook.db", metavar="URL",
                       help=say("nbgrader's gradebook (default: gradebook.db here; postgresql://… too)",
                                "nbgrader 的成绩册（默认当前文件夹的 gradebook.db；也可以是 postgresql://…）"))  # fmt: skip
    grade.add_argument("--dask", metavar="ADDRESS",
                       help=say("grade on a Dask cluster, such as tcp://scheduler:8786",
                                "在 Dask 集群上评分，例如 tcp://scheduler:8786"))  # fmt: skip
    grade.add_argument("--fresh", action="store_true",
                       help=say("grade again what was graded already", "已评过的也重新评"))  # fmt: skip
    grade.add_argument("--trust-submissions", action="store_true",
                       help=say("grade although the sandbox is incomplete", "即使沙箱不完整也评分"))  # fmt: skip

    release = command("release", say("make exercises/ from solutions/", "由 solutions/ 生成 exercises/"))
    release.add_argument("exercise", nargs="*", help=some)
    release.add_argument("--check", action="store_true",
                         help=say("only compare, exit 1 when they differ", "只比较，有差异则以 1 退出"))  # fmt: skip

    command("audit", say("prove that the course is sound", "证明课程无误")).add_argument(
        "exercise", nargs="*", help=some
    )
    record = command("record", say("write down what an author has checked", "记录作者核对过的内容"))
    record.add_argument("what", choices=("symptoms", "translation"),
                        help=say("symptoms: which promises each mistake breaks; translation: a Chinese page says what its English "
                                 "page says",
                                 "symptoms：每种错误违反哪些要求；translation：中文页与英文页内容一致"))  # fmt: skip
    record.add_argument("name", nargs="*", help=some)
    command("doctor", say("test the sandbox, the device and the versions", "检查沙箱、设备与版本"))

    bench = command("bench", say("measure speed as ratios in one run", "测量速度，给出同一次运行中的比值"))
    bench.add_argument("name", nargs="*", help=say("which benchmarks (default: all)", "哪些测试（默认全部）"))
    bench.add_argument("--submissions", type=_above_zero(say), default=200, metavar="N",
                       help=say("how many to grade (default: 200)", "评多少份（默认 200）"))  # fmt: skip
    bench.add_argument("--json", type=Path, metavar="FILE",
                       help=say("where the numbers go (default: _build/bench/bench.json)",
                                "数字写到哪里（默认 _build/bench/bench.json）"))  # fmt: skip
    return whole


def _asked(arguments: Sequence[str]) -> str | None:
    """The value of `--lang`, looked up before anything is parsed: complaints must be in that language too."""
    found = re.search(r"(?:^|\n)--lang[=\n](\w+)", "\n".join(arguments))
    return found and found[1]


def _cores() -> int:
    """Those this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _above_zero(say: Callable[[str, str], str]) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdigit() or int(text) == 0:
            raise argparse.ArgumentTypeError(say(f"{text!r} is not a whole number above 0", f"{text!r} 不是正整数"))
        return int(text)

    return number
