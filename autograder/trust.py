"""What the sandbox must promise before a stranger's code may run, and which layers keep each promise."""

import sys

from .language import LANGUAGES
from .told import Told

PROMISES = {
    "files": {
        "layers": ("mount", "landlock"),
        "en": "student code sees no file but Python's own and its scratch folder",
        "zh": "学生代码只能看到 Python 自身的文件和自己的临时文件夹",
    },
    "network": {
        "layers": ("network", "seccomp"),
        "en": "student code reaches no network",
        "zh": "学生代码无法访问网络",
    },
    "processes": {
        "layers": ("pid", "seccomp"),
        "en": "student code neither leaves processes behind nor touches those of others",
        "zh": "学生代码不会留下进程，也碰不到别人的进程",
    },
    "privilege": {
        "layers": ("capabilities", "seccomp"),
        "en": "student code has no privilege and can gain none",
        "zh": "学生代码没有特权，也无法获得特权",
    },
}


class UntrustedMachine(Told):
    """This machine cannot keep a promise; grading strangers' code here needs a person's word."""


def unmet(missing_layers: dict[str, str]) -> list[str]:
    """The promises for which no layer is left."""
    return [name for name, promise in PROMISES.items() if all(layer in missing_layers for layer in promise["layers"])]


def demand(missing_layers: dict[str, str]) -> None:
    """Raise unless every promise is kept by some layer."""
    if broken := unmet(missing_layers):
        promised = {lang: "\n".join(f"  - {PROMISES[name][lang]}" for name in broken) for lang in LANGUAGES}
        reasons = "\n".join(f"  {layer}: {reason}" for layer, reason in missing_layers.items())
        raise UntrustedMachine(
            f"This machine cannot promise that\n{promised['en']}\nMissing layers:\n{reasons}\n"
            "Run «autograder doctor» to see how to get them. If you trust everybody who handed in, add --trust-submissions.",
            f"这台机器无法保证：\n{promised['zh']}\n缺少的隔离层：\n{reasons}\n"
            "运行 autograder doctor 查看如何补齐；若信任所有提交者，加 --trust-submissions。",
        )


def demand_linux() -> None:
    if not sys.platform.startswith("linux"):
        raise UntrustedMachine(
            "Grading strangers' code needs Linux: this system has no namespaces, Landlock or seccomp. "
            "«autograder check» works everywhere for your own notebooks.",
            "批改他人的代码需要 Linux：这个系统没有命名空间、Landlock 和 seccomp。检查自己的 notebook 请用 autograder check，它在哪里都能用。",
        )
