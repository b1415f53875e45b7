"""Tell a person whether this machine may grade strangers' code: sandbox, versions, device, and how to get what is missing."""

import importlib.metadata
import os
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.course import PACKAGE
from autograder.errors import UserError
from autograder.isolation import guarantees
from autograder.language import COLON, Text

from .layers import ESCAPES, HOLDS, MISSING, UNPROVEN, Finding, Lab, prove

SOUND, UNSOUND = 0, 3
ALWAYS = {  # guarantees that need nothing of the machine, by the one layer that keeps each
    "memory": Text(
        "student code can find no answer, so that marks can only be earned",
        "学生代码找不到任何答案，分数只能靠做对得到",
    ),
    "environment": Text("student code is told no secret of whoever grades", "学生代码得不到评分者的任何秘密"),
    "limits": Text("student code comes to an end, whatever it does", "学生代码无论做什么都会被终止"),
}
SHOWN = ("torch", "numpy", "safetensors", "ipython", "nbgrader")
REQUIREMENTS = PACKAGE.parent / "requirements.txt"


@dataclass(frozen=True)
class LayerWords:
    """What a layer of the sandbox is called, and how it is tried."""

    name: Text
    tried: Text


LAYERS = {
    "mount": LayerWords(Text("private root folder", "私有根目录"), Text("read a file outside the scratch folder, change a file anybody may write", "读取临时文件夹以外的文件，改写任何人都可写的文件")),
    "landlock": LayerWords(Text("Landlock", "Landlock"), Text("the same, in a process that sees the whole machine", "同上，但进程能看到整台机器")),
    "network": LayerWords(Text("network namespace", "网络命名空间"), Text("speak to a listener on this machine by TCP, UDP and an abstract socket", "通过 TCP、UDP 和抽象套接字与本机的监听者通信")),
    "pid": LayerWords(Text("process namespace", "进程命名空间"), Text("leave a grandchild behind in a session of its own", "留下一个独立会话中的孙进程")),
    "ipc": LayerWords(Text("shared-memory namespace", "共享内存命名空间"), Text("make shared memory that the whole machine can find", "建立全机可见的共享内存")),
    "user": LayerWords(Text("ordinary user", "普通用户"), Text("be root, or become root", "以 root 身份运行，或变成 root")),
    "capabilities": LayerWords(Text("capabilities", "权能（capabilities）"), Text("use a privilege: change the root folder", "使用特权：更换根目录")),
    "seccomp": LayerWords(Text("seccomp", "seccomp"), Text("open sockets, start a process, gain privileges in a user namespace", "打开套接字，启动进程，在用户命名空间里获得特权")),
    "limits": LayerWords(Text("limits", "资源限制"), Text("100 GiB of memory, twice the file size, threads and output allowed, sleep and work for ever", "100 GiB 内存，两倍于限额的文件、线程和输出，永远睡眠，永远计算")),
    "environment": LayerWords(Text("environment", "环境变量"), Text("find the salt and the home folder in the variables", "在环境变量中寻找盐值和主目录")),
    "memory": LayerWords(Text("no answers inside", "内部没有答案"), Text("find a suite, reference, mistake or solution in modules, imports, objects, raw memory, files", "在模块、导入、对象、原始内存和文件中寻找测试、参考实现、错误或解答")),
}  # fmt: skip

DEEDS = {
    "read": Text("read", "读取"),
    "written": Text("written", "写入"),
    "tcp": Text("TCP", "TCP"),
    "udp": Text("UDP", "UDP"),
    "abstract": Text("abstract socket", "抽象套接字"),
    "survivor": Text("a process survived", "有进程残留"),
    "segment": Text("shared memory seen outside", "外部可见共享内存"),
    "root": Text("it is root", "是 root"),
    "chroot": Text("root folder changed", "根目录被更换"),
    "capability": Text("it has capabilities", "拥有权能"),
    "socket": Text("socket", "套接字"),
    "process": Text("new process", "新进程"),
    "namespace": Text("privileges gained", "获得特权"),
    "memory": Text("memory", "内存"),
    "file": Text("file size", "文件大小"),
    "threads": Text("threads", "线程"),
    "output": Text("output", "输出"),
    "time": Text("time", "时间"),
    "processor": Text("processor time", "处理器时间"),
    "salt": Text("the salt", "盐值"),
    "home": Text("the home folder", "主目录"),
    "modules": Text("modules", "模块"),
    "imports": Text("imports", "导入"),
    "folders": Text("folders", "文件夹"),
    "files": Text("files", "文件"),
    "objects": Text("objects", "对象"),
}
STATUS = {
    HOLDS: Text("holds", "有效"),
    MISSING: Text("missing", "缺失"),
    UNPROVEN: Text("not provable here", "此处无法证明"),
}
COLOURS = {HOLDS: "green", MISSING: "red", UNPROVEN: "yellow"}

_FAULT = Text("this is a fault of the grader, please report it", "这是评分程序的缺陷，请报告")
REMEDIES = {
    "mount": Text(
        "a kernel with namespaces (user, mount, pid, net, ipc) that are open to this user",
        "需要启用命名空间（user、mount、pid、net、ipc）并对当前用户开放的内核",
    ),
    "landlock": Text(
        "a kernel from 5.13 on (this is {kernel}), built with Landlock and started with landlock in its lsm= list",
        "需要 5.13 以上的内核（当前 {kernel}），编译时启用 Landlock，并在启动参数 lsm= 中包含 landlock",
    ),
    "seccomp": Text(
        "a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64 (this is {machine})",
        "需要启用 CONFIG_SECCOMP_FILTER 的内核，架构为 x86_64 或 aarch64（当前 {machine}）",
    ),
    "user": Text(
        "grade as an ordinary user, or let others read Python: chmod -R o+rX {python} and the folders above it",
        "以普通用户评分，或让其他用户可读 Python：chmod -R o+rX {python} 及其上级目录",
    ),
    "limits": Text(
        "grade as an ordinary user: the kernel does not count root's threads",
        "以普通用户评分：内核不限制 root 的线程数",
    ),
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
        console.print(Text(f"{platform.system()} has no namespaces, no Landlock and no seccomp: grading strangers' "
                           "code needs Linux (a virtual machine or a container will do). `autograder check` works here.",
                           f"{platform.system()} 没有命名空间、Landlock 和 seccomp：批改他人的代码需要 Linux"
                           "（虚拟机或容器亦可）。autograder check 在这里可以使用。")[lang])  # fmt: skip
        return UNSOUND
    try:
        with (
            console.status(Text("trying to break out of the sandbox …", "正在尝试逃出沙箱……")[lang]),
            Lab() as lab,
        ):
            findings = [prove(lab, layer) for layer in ESCAPES]
    except Exception as failed:
        reason = failed.message[lang] if isinstance(failed, UserError) else str(failed)
        console.print(Text("No student's process could be started:", "无法启动学生进程：")[lang], reason, markup=False)
        return UNSOUND
    _tell_layers(console, lang, findings)
    _tell_remedies(console, lang, findings)
    return _tell_guarantees(console, lang, findings)


def _tell_layers(console: Console, lang: str, findings: list[Finding]) -> None:
    rows = [
        (words.name[lang], words.tried[lang], happened(f, lang), STATUS[f.status][lang], COLOURS[f.status])
        for f in findings
        for words in [LAYERS[f.layer]]
    ]
    if not console.is_terminal:
        for layer, tried, what, status, _ in rows:
            console.print(
                Text(f"{layer}: {status} ({tried}: {what})", f"{layer}：{status}（{tried}：{what}）")[lang],
                markup=False,
            )
        return
    titles = (Text("layer", "隔离层"), Text("tried", "尝试"), Text("what happened", "结果"))
    table = Table(*(title[lang] for title in titles), "")
    for layer, tried, what, status, colour in rows:
        table.add_row(layer, tried, escape(what), f"[{colour}]{status}[/]")
    console.print(table, soft_wrap=False)


def happened(finding: Finding, lang: str) -> str:
    """One line about an escape: stopped, got through, or stopped for another reason."""
    comma = Text(", ", "、")[lang]
    if finding.status == MISSING:
        through = Text("got through: ", "未能阻止：")[lang] + comma.join(DEEDS[name][lang] for name in finding.through)
        return "; ".join(filter(None, (finding.through and through, finding.reason)))
    if finding.slow:
        return Text("no answer in time, twice; try again when this machine is less busy",
                    "两次都没有及时得到回答；请在机器空闲些时再试")[lang]  # fmt: skip
    if finding.status == UNPROVEN:
        return finding.reason or Text("stopped, but also without this layer", "被阻止，但没有这一层时也被阻止")[lang]
    if not finding.otherwise:
        return Text("grading does not run as root, and root was not gained", "评分不以 root 运行，也未能获得 root")[
            lang
        ]
    return Text("stopped; succeeds without it: ", "被阻止；没有这一层则得逞：")[lang] + comma.join(
        DEEDS[name][lang] for name in finding.otherwise
    )


def _tell_remedies(console: Console, lang: str, findings: list[Finding]) -> None:
    by_remedy: dict[str, list[str]] = {}
    for finding in findings:
        if finding.status == MISSING:
            for remedy in remedies(finding.layer, lang):
                by_remedy.setdefault(remedy, []).append(LAYERS[finding.layer].name[lang])
    for remedy, names in by_remedy.items():
        line = Text(f"to get {', '.join(names)}: {remedy}", f"补齐{'、'.join(names)}：{remedy}")[lang]
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


def _tell_guarantees(console: Console, lang: str, findings: list[Finding]) -> int:
    by_layer = {finding.layer: finding for finding in findings}
    console.print()
    always = [guarantees.Guarantee((layer,), text) for layer, text in ALWAYS.items()]
    for guarantee in [*guarantees.GUARANTEES.values(), *always]:
        said = _kept_or_why_not([by_layer[layer] for layer in guarantee.layers], lang)
        console.print(guarantee.text[lang] + COLON[lang] + said, markup=False)
    sound = guarantees_hold(findings)
    console.print(
        Text("Strangers' code may be graded on this machine.", "这台机器可以批改他人的代码。")[lang] if sound
        else Text("Strangers' code should not be graded on this machine.", "不应在这台机器上批改他人的代码。")[lang]
    )  # fmt: skip
    console.print(
        Text("What is promised, what is not, and how it is tested: SECURITY.md",
             "保证什么、不保证什么、如何测试：见 SECURITY.md")[lang]
    )  # fmt: skip
    return SOUND if sound else UNSOUND


def _kept_or_why_not(findings: list[Finding], lang: str) -> str:
    """Which layers keep a guarantee, or what became of each that should."""
    keepers = [LAYERS[finding.layer].name[lang] for finding in findings if finding.status == HOLDS]
    if keepers:
        return Text("kept by ", "由以下各层保证：")[lang] + Text(", ", "、")[lang].join(keepers)
    reasons = [f"{LAYERS[f.layer].name[lang]}: {happened(f, lang) or STATUS[f.status][lang]}" for f in findings]
    return Text(f"NOT KEPT ({'; '.join(reasons)})", f"无法保证（{'；'.join(reasons)}）")[lang]


def guarantees_hold(findings: list[Finding]) -> bool:
    """Whether every guarantee is kept by a layer that was proven, and nothing got past the layers that are always there."""
    unproven = {finding.layer: finding.status for finding in findings if finding.status != HOLDS}
    return not guarantees.unmet(unproven) and not any(layer in unproven for layer in ALWAYS)


def _tell_versions(console: Console, lang: str) -> None:
    who = "root" if hasattr(os, "geteuid") and os.geteuid() == 0 else Text("an ordinary user", "普通用户")[lang]
    console.print(
        f"{platform.system()} {platform.release()} {platform.machine()}, Python {platform.python_version()}, {who}"
    )
    pins = pinned()
    for name in SHOWN:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = Text("not installed", "未安装")[lang]
        wanted = pins.get(name)
        differs = wanted is not None and version.partition("+")[0] != wanted
        note = Text(f" (the course is tested with {wanted})", f"（课程用 {wanted} 测试）")[lang] if differs else ""
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
    words = {True: Text("present", "可用")[lang], False: Text("absent", "不可用")[lang]}
    console.print("  " + ", ".join(f"{name}: {words[is_there]}" for name, is_there in there.items()))
