"""What the sandbox must guarantee before a stranger's code may run, and the layers that keep each guarantee."""

import sys
from collections.abc import Collection
from dataclasses import dataclass

from autograder.errors import UserError
from autograder.language import Text


@dataclass(frozen=True)
class Guarantee:
    """One guarantee. It is kept as long as one of its layers holds."""

    layers: tuple[str, ...]
    text: Text


GUARANTEES = {
    "files": Guarantee(
        ("mount", "landlock"),
        Text(
            "student code sees no files except Python's own and its scratch folder",
            "学生代码只能看到 Python 自身的文件和自己的临时文件夹",
        ),
    ),
    "network": Guarantee(("network", "seccomp"), Text("student code reaches no network", "学生代码无法访问网络")),
    "processes": Guarantee(
        ("pid", "seccomp"),
        Text(
            "student code leaves no processes behind and cannot touch other processes",
            "学生代码不会留下进程，也碰不到别人的进程",
        ),
    ),
    "privilege": Guarantee(
        ("capabilities", "seccomp"),
        Text("student code has no privilege and can gain none", "学生代码没有特权，也无法获得特权"),
    ),
}
HOW_TO_TRUST = Text(
    "add --trust-submissions (with nbgrader autograde: set AUTOGRADER_TRUST_SUBMISSIONS=1)",
    "加 --trust-submissions（用 nbgrader autograde 时：设置 AUTOGRADER_TRUST_SUBMISSIONS=1）",
)


class UntrustedMachine(UserError):
    """This machine cannot keep a guarantee. Grading strangers' code here needs an explicit decision."""


class MissingLayers(UserError):
    """A student's process lacks a layer that this machine had when grading began. The submission is not graded."""


def unmet(missing_layers: Collection[str]) -> list[str]:
    """The guarantees of which every layer is missing."""
    return [name for name, one in GUARANTEES.items() if all(layer in missing_layers for layer in one.layers)]


def demand(missing_layers: dict[str, str]) -> None:
    """Raise unless at least one layer keeps each guarantee."""
    if broken := unmet(missing_layers):
        promised = Text.each(lambda lang: "\n".join(f"  - {GUARANTEES[name].text[lang]}" for name in broken))
        reasons = _reasons(missing_layers)
        raise UntrustedMachine(
            f"This machine cannot guarantee that\n{promised.en}\nMissing layers:\n{reasons}\n"
            f"Run `autograder doctor` to see how to get them. If you trust everybody who handed in, {HOW_TO_TRUST.en}.",
            f"这台机器无法保证：\n{promised.zh}\n缺少的隔离层：\n{reasons}\n"
            f"运行 autograder doctor 查看如何补齐；若信任所有提交者，{HOW_TO_TRUST.zh}。",
        )


def demand_layers(missing_layers: dict[str, str], may_lack: Collection[str] | None) -> None:
    """Raise if a student's process lacks a layer that is not in `may_lack`; None accepts any process."""
    lost = {} if may_lack is None else {name: why for name, why in missing_layers.items() if name not in may_lack}
    if lost:
        reasons = _reasons(lost)
        raise MissingLayers(
            f"a layer of the sandbox failed in this student's process, so the code was not run:\n{reasons}\n"
            "This is not the student's fault. Run the same command again; `autograder doctor` tests every layer",
            f"这份提交的进程缺少沙箱的某一层，因此没有运行其中的代码：\n{reasons}\n"
            "这不是学生的问题。请再次运行同一命令；autograder doctor 可以逐层检查",
        )


def demand_linux() -> None:
    if not sys.platform.startswith("linux"):
        raise UntrustedMachine(
            "Grading strangers' code needs Linux: this system has no namespaces, Landlock or seccomp. "
            "`autograder check` works everywhere for your own notebooks.",
            "批改他人的代码需要 Linux：这个系统没有命名空间、Landlock 和 seccomp。检查自己的 notebook 请用 autograder check，它在哪里都能用。",
        )


def _reasons(missing_layers: dict[str, str]) -> str:
    return "\n".join(f"  {layer}: {reason}" for layer, reason in missing_layers.items())
