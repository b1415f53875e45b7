"""Tell a person whether this machine may grade strangers' code: sandbox, versions, device, and how to get what is missing."""

import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import trust
from .proofs import ESCAPES, HOLDS, MISSING, UNPROVEN, Finding, Laboratory, prove
from .told import Told

SOUND, UNSOUND = 0, 3
ALWAYS = {  # promises that need nothing of the machine, by the layer that keeps each: nothing else can stand in for it
    "memory": {
        "en": "student code can find no answer, so that marks can only be earned",
        "zh": "学生代码找不到任何答案，分数只能靠做对得到",
    },
    "environment": {
        "en": "student code is told no secret of whoever grades",
        "zh": "学生代码得不到评分者的任何秘密",
    },
    "limits": {
        "en": "student code comes to an end, whatever it does",
        "zh": "学生代码无论做什么都会被终止",
    },
}
SHOWN = ("torch", "numpy", "safetensors", "ipython", "nbgrader", "pytest")
REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"

LAYERS = {
    "mount": {
        "en": ("private root folder", "read a file outside the scratch folder, change a file anybody may write"),
        "zh": ("私有根目录", "读取临时文件夹以外的文件，改写任何人都可写的文件"),
    },
    "landlock": {
        "en": ("Landlock", "the same, in a process that sees the whole machine"),
        "zh": ("Landlock", "同上，但进程能看到整台机器"),
    },
    "network": {
        "en": ("network namespace", "speak to a listener on this machine by TCP, UDP and an abstract socket"),
        "zh": ("网络命名空间", "通过 TCP、UDP 和抽象套接字与本机的监听者通信"),
    },
    "pid": {
        "en": ("process namespace", "leave a grandchild behind in a session of its own"),
        "zh": ("进程命名空间", "留下一个独立会话中的孙进程"),
    },
    "ipc": {
        "en": ("shared-memory namespace", "make shared memory that the whole machine can find"),
        "zh": ("共享内存命名空间", "建立全机可见的共享内存"),
    },
    "user": {"en": ("ordinary user", "be root, or become root"), "zh": ("普通用户", "以 root 身份运行，或变成 root")},
    "capabilities": {
        "en": ("capabilities", "use a privilege: change the root folder"),
        "zh": ("权能（capabilities）", "使用特权：更换根目录"),
    },
    "seccomp": {
        "en": ("seccomp", "open sockets, start a process, gain privileges in a user namespace"),
        "zh": ("seccomp", "打开套接字，启动进程，在用户命名空间里获得特权"),
    },
    "limits": {
        "en": ("limits", "100 GiB of memory, twice the file size, threads and output allowed, sleep and work for ever"),
        "zh": ("资源限制", "100 GiB 内存，两倍于限额的文件、线程和输出，永远睡眠，永远计算"),
    },
    "environment": {
        "en": ("environment", "find the salt and the home folder in the variables"),
        "zh": ("环境变量", "在环境变量中寻找盐值和主目录"),
    },
    "memory": {
        "en": ("no answers inside", "find a suite, reference, mistake or solution in modules, imports, objects, raw memory, files"),
        "zh": ("内部没有答案", "在模块、导入、对象、原始内存和文件中寻找测试、参考实现、错误或解答"),
    },
}  # fmt: skip

DEEDS = {
    "read": {"en": "read", "zh": "读取"},
    "written": {"en": "written", "zh": "写入"},
    "tcp": {"en": "TCP", "zh": "TCP"},
    "udp": {"en": "UDP", "zh": "UDP"},
    "abstract": {"en": "abstract socket", "zh": "抽象套接字"},
    "survivor": {"en": "a process survived", "zh": "有进程残留"},
    "segment": {"en": "shared memory seen outside", "zh": "外部可见共享内存"},
    "root": {"en": "it is root", "zh": "是 root"},
    "chroot": {"en": "root folder changed", "zh": "根目录被更换"},
    "capability": {"en": "it has capabilities", "zh": "拥有权能"},
    "socket": {"en": "socket", "zh": "套接字"},
    "process": {"en": "new process", "zh": "新进程"},
    "namespace": {"en": "privileges gained", "zh": "获得特权"},
    "memory": {"en": "memory", "zh": "内存"},
    "file": {"en": "file size", "zh": "文件大小"},
    "threads": {"en": "threads", "zh": "线程"},
    "output": {"en": "output", "zh": "输出"},
    "time": {"en": "time", "zh": "时间"},
    "processor": {"en": "processor time", "zh": "处理器时间"},
    "salt": {"en": "the salt", "zh": "盐值"},
    "home": {"en": "the home folder", "zh": "主目录"},
    "modules": {"en": "modules", "zh": "模块"},
    "imports": {"en": "imports", "zh": "导入"},
    "folders": {"en": "folders", "zh": "文件夹"},
    "files": {"en": "files", "zh": "文件"},
    "objects": {"en": "objects", "zh": "对象"},
}
STATUS = {
    HOLDS: {"en": "holds", "zh": "有效"},
    MISSING: {"en": "missing", "zh": "缺失"},
    UNPROVEN: {"en": "not provable here", "zh": "此处无法证明"},
}
COLOURS = {HOLDS: "green", MISSING: "red", UNPROVEN: "yellow"}

_FAULT = {"en": "this is a fault of the grader, please report it", "zh": "这是评分程序的缺陷，请报告"}
REMEDIES = {
    "mount": {
        "en": "a kernel with namespaces (user, mount, pid, net, ipc) that are open to this user",
        "zh": "需要启用命名空间（user、mount、pid、net、ipc）并对当前用户开放的内核",
    },
    "landlock": {
        "en": "a kernel from 5.13 on (this is {kernel}), built with Landlock and started with «landlock» in its lsm= list",
        "zh": "需要 5.13 以上的内核（当前 {kernel}），编译时启用 Landlock，并在启动参数 lsm= 中包含 landlock",
    },
    "seccomp": {
        "en": "a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64 (this is {machine})",
        "zh": "需要启用 CONFIG_SECCOMP_FILTER 的内核，架构为 x86_64 或 aarch64（当前 {machine}）",
    },
    "user": {
        "en": "grade as an ordinary user, or let others read Python: chmod -R o+rX {python} and the folders above it",
        "zh": "以普通用户评分，或让其他用户可读 Python：chmod -R o+rX {python} 及其上级目录",
    },
    "limits": {
        "en": "grade as an ordinary user: the kernel does not count root's threads",
        "zh": "以普通用户评分：内核不限制 root 的线程数",
    },
    "environment": _FAULT,
    "memory": _FAULT,
    "capabilities": _FAULT,
}
OBSTACLES = (  # a setting, the value that refuses namespaces to ordinary users, the value that grants them
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user.max_user_namespaces", "0", "15000"),
)
DOCKER = ("--cap-add SYS_ADMIN", "--security-opt seccomp=unconfined", "--security-opt apparmor=unconfined")


def examine_machine(console: Console, lang: str) -> int:
    """Print what holds on this machine; 0 when student code can be trusted to harm nothing here, 3 otherwise."""
    _tell_versions(console, lang)
    _tell_devices(console, lang)
    if not sys.platform.startswith("linux"):
        console.print(_say(lang, f"{platform.system()} has no namespaces, no Landlock and no seccomp: grading strangers' "
                           "code needs Linux (a virtual machine or a container will do). «autograder check» works here.",
                           f"{platform.system()} 没有命名空间、Landlock 和 seccomp：批改他人的代码需要 Linux"
                           "（虚拟机或容器亦可）。autograder check 在这里可以使用。"))  # fmt: skip
        return UNSOUND
    try:
        with (
            console.status(_say(lang, "trying to break out of the sandbox …", "正在尝试逃出沙箱……")),
            Laboratory() as lab,
        ):
            findings = [prove(lab, layer) for layer in ESCAPES]
    except Exception as failed:
        reason = failed.message[lang] if isinstance(failed, Told) else str(failed)
        console.print(_say(lang, "No student's process could be started:", "无法启动学生进程："), reason, markup=False)
        return UNSOUND
    _tell_layers(console, lang, findings)
    _tell_remedies(console, lang, findings)
    return _tell_promises(console, lang, findings)


def _tell_layers(console: Console, lang: str, findings: list[Finding]) -> None:
    rows = [(*LAYERS[f.layer][lang], happened(f, lang), STATUS[f.status][lang], COLOURS[f.status]) for f in findings]
    if not console.is_terminal:
        for layer, tried, what, status, _ in rows:
            console.print(
                _say(lang, f"{layer}: {status} ({tried}: {what})", f"{layer}：{status}（{tried}：{what}）"),
                markup=False,
            )
        return
    table = Table(*_say(lang, ("layer", "tried", "what happened", ""), ("隔离层", "尝试", "结果", "")))
    for layer, tried, what, status, colour in rows:
        table.add_row(layer, tried, escape(what), f"[{colour}]{status}[/]")
    console.print(table, soft_wrap=False)


def happened(finding: Finding, lang: str) -> str:
    """One line about an escape: stopped, got through, or stopped for another reason."""
    comma = _say(lang, ", ", "、")
    if finding.status == MISSING:
        through = _say(lang, "got through: ", "未能阻止：") + comma.join(DEEDS[name][lang] for name in finding.through)
        return "; ".join(filter(None, (finding.through and through, finding.reason)))
    if finding.slow:
        return _say(lang, "no answer in time, twice; try again when this machine is less busy",
                    "两次都没有及时得到回答；请在机器空闲些时再试")  # fmt: skip
    if finding.status == UNPROVEN:
        return finding.reason or _say(lang, "stopped, but also without this layer", "被阻止，但没有这一层时也被阻止")
    if not finding.otherwise:
        return _say(
            lang, "grading does not run as root, and root was not gained", "评分不以 root 运行，也未能获得 root"
        )
    return _say(lang, "stopped; succeeds without it: ", "被阻止；没有这一层则得逞：") + comma.join(
        DEEDS[name][lang] for name in finding.otherwise
    )


def _tell_remedies(console: Console, lang: str, findings: list[Finding]) -> None:
    by_remedy: dict[str, list[str]] = {}
    for finding in findings:
        if finding.status == MISSING:
            for remedy in remedies(finding.layer, lang):
                by_remedy.setdefault(remedy, []).append(LAYERS[finding.layer][lang][0])
    for remedy, names in by_remedy.items():
        line = _say(lang, f"to get {', '.join(names)}: {remedy}", f"补齐{'、'.join(names)}：{remedy}")
        console.print(line, markup=False)


def remedies(layer: str, lang: str) -> list[str]:
    """How to get a layer on this machine."""
    if layer in ("mount", "network", "pid", "ipc") and (found := _obstacles()):
        return found
    remedy = REMEDIES.get(layer, REMEDIES["mount"])[lang]
    return [remedy.format(kernel=platform.release(), machine=platform.machine(), python=sys.base_prefix)]


def _obstacles() -> list[str]:
    """What on this machine keeps namespaces from us, as the command that takes it away."""
    found = []
    for setting, wrong, right in OBSTACLES:
        path = Path("/proc/sys", *setting.split("."))
        if path.exists() and path.read_text().strip() == wrong:
            found.append(f"sudo sysctl {setting}={right}")
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        found.append(f"docker run {' '.join(DOCKER)} …")
    return found


def _tell_promises(console: Console, lang: str, findings: list[Finding]) -> int:
    by_layer = {finding.layer: finding for finding in findings}
    console.print()
    promises = [*trust.PROMISES.values(), *({**text, "layers": (layer,)} for layer, text in ALWAYS.items())]
    for promise in promises:
        said = _kept_or_why_not([by_layer[layer] for layer in promise["layers"]], lang)
        console.print(promise[lang] + _say(lang, ": ", "：") + said, markup=False)
    sound = kept_promises(findings)
    console.print(
        _say(lang, "Strangers' code may be graded on this machine.", "这台机器可以批改他人的代码。") if sound
        else _say(lang, "Strangers' code should not be graded on this machine.", "不应在这台机器上批改他人的代码。")
    )  # fmt: skip
    console.print(
        _say(lang, "What is promised, what is not, and how it is tested: SECURITY.md",
             "保证什么、不保证什么、如何测试：见 SECURITY.md")
    )  # fmt: skip
    return SOUND if sound else UNSOUND


def _kept_or_why_not(findings: list[Finding], lang: str) -> str:
    """Which layers keep a promise, or what became of each that should."""
    keepers = [LAYERS[finding.layer][lang][0] for finding in findings if finding.status == HOLDS]
    if keepers:
        return _say(lang, "kept by ", "由以下各层保证：") + _say(lang, ", ", "、").join(keepers)
    reasons = [f"{LAYERS[f.layer][lang][0]}: {happened(f, lang) or STATUS[f.status][lang]}" for f in findings]
    return _say(lang, f"NOT KEPT ({'; '.join(reasons)})", f"无法保证（{'；'.join(reasons)}）")


def kept_promises(findings: list[Finding]) -> bool:
    """Whether every promise is kept by a layer that was proven, and nothing got past what is always there."""
    unproven = {finding.layer: finding.status for finding in findings if finding.status != HOLDS}
    return not trust.unmet(unproven) and not any(layer in unproven for layer in ALWAYS)


def _tell_versions(console: Console, lang: str) -> None:
    who = "root" if hasattr(os, "geteuid") and os.geteuid() == 0 else _say(lang, "an ordinary user", "普通用户")
    console.print(
        f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}, {who}"
    )
    pins = pinned()
    for name in SHOWN:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = _say(lang, "not installed", "未安装")
        wanted = pins.get(name)
        differs = wanted is not None and version.partition("+")[0] != wanted
        note = _say(lang, f" (the course is tested with {wanted})", f"（课程用 {wanted} 测试）") if differs else ""
        console.print(f"  {name} {version}{note}", markup=False)


def pinned() -> dict[str, str]:
    """The versions of requirements.txt; an installed package has no such file, and then nothing is compared."""
    if not REQUIREMENTS.is_file():
        return {}
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return {match[1].lower(): match[2] for match in (re.match(r"([\w.-]+)==([\w.]+)", line) for line in lines) if match}


def _tell_devices(console: Console, lang: str) -> None:
    import torch

    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    words = {True: _say(lang, "present", "可用"), False: _say(lang, "absent", "不可用")}
    console.print("  " + ", ".join(f"{name}: {words[is_there]}" for name, is_there in there.items()))


def _say(lang: str, en, zh):
    return zh if lang == "zh" else en
