"""What the sandbox must promise before a stranger's code may run, and which layers keep each promise."""

import sys

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


class UntrustedMachine(Exception):
    """This machine cannot keep a promise; grading strangers' code here needs a person's word."""


def unmet(missing_layers: dict[str, str]) -> list[str]:
    """The promises for which no layer is left."""
    return [name for name, promise in PROMISES.items() if all(layer in missing_layers for layer in promise["layers"])]


def demand(missing_layers: dict[str, str], lang: str) -> None:
    """Raise unless every promise is kept by some layer."""
    if broken := unmet(missing_layers):
        lines = [f"  - {PROMISES[name][lang]}" for name in broken]
        reasons = [f"  {layer}: {reason}" for layer, reason in missing_layers.items()]
        if lang == "zh":
            text = "这台机器无法保证：\n{}\n缺少的隔离层：\n{}\n运行 autograder doctor 查看如何补齐；若信任所有提交者，加 --trust-submissions。"
        else:
            text = (
                "This machine cannot promise that\n{}\nMissing layers:\n{}\n"
                "Run «autograder doctor» to see how to get them. If you trust everybody who handed in, add --trust-submissions."
            )
        raise UntrustedMachine(text.format("\n".join(lines), "\n".join(reasons)))


def demand_linux() -> None:
    if not sys.platform.startswith("linux"):
        raise UntrustedMachine(
            "Grading strangers' code needs Linux: this system has no namespaces, Landlock or seccomp. "
            "«autograder check» works everywhere for your own notebooks. · 批量评分需要 Linux；检查自己的 notebook 请用 autograder check。"
        )
