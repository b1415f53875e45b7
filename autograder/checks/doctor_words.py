"""The words of `autograder doctor` in both languages: layers, escapes, states, guarantees and remedies."""

from dataclasses import dataclass

from autograder.language import Text

from .layers import HOLDS, MISSING, UNPROVEN


@dataclass(frozen=True)
class LayerWords:
    """The name of a layer of the sandbox, and what its escape tries to do."""

    name: Text
    tried: Text


LAYERS = {
    "mount": LayerWords(
        Text("private root folder", "私有根目录"),
        Text(
            "read a file outside the scratch folder, change a file that everybody may write",
            "读取临时文件夹以外的文件，改写任何人都可写的文件",
        ),
    ),
    "landlock": LayerWords(
        Text("Landlock", "Landlock"),
        Text("the same, in a process that sees the whole machine", "同上，但进程能看到整台机器"),
    ),
    "network": LayerWords(
        Text("network namespace", "网络命名空间"),
        Text(
            "connect to a listener on this machine by TCP, UDP and an abstract socket",
            "通过 TCP、UDP 和抽象套接字与本机的监听者通信",
        ),
    ),
    "pid": LayerWords(
        Text("process namespace", "进程命名空间"),
        Text("leave a grandchild process behind, in its own session", "留下一个独立会话中的孙进程"),
    ),
    "ipc": LayerWords(
        Text("shared-memory namespace", "共享内存命名空间"),
        Text("make shared memory that the whole machine can find", "建立全机可见的共享内存"),
    ),
    "user": LayerWords(
        Text("ordinary user", "普通用户"),
        Text("be root, or become root", "以 root 身份运行，或变成 root"),
    ),
    "capabilities": LayerWords(
        Text("capabilities", "权能（capabilities）"),
        Text("use a privilege: change the root folder", "使用特权：更换根目录"),
    ),
    "seccomp": LayerWords(
        Text("seccomp", "seccomp"),
        Text(
            "open sockets, start a process, gain privileges in a user namespace",
            "打开套接字，启动进程，在用户命名空间里获得特权",
        ),
    ),
    "limits": LayerWords(
        Text("limits", "资源限制"),
        Text(
            "100 GiB of memory, twice the file size, threads and output allowed, sleep forever, compute forever",
            "100 GiB 内存，两倍于限额的文件、线程和输出，永远睡眠，永远计算",
        ),
    ),
    "environment": LayerWords(
        Text("environment", "环境变量"),
        Text("find the salt and the home folder in the variables", "在环境变量中寻找盐值和主目录"),
    ),
    "memory": LayerWords(
        Text("no answers inside", "内部没有答案"),
        Text(
            "find a suite, reference, mistake or solution in modules, imports, objects, raw memory, files",
            "在模块、导入、对象、原始内存和文件中寻找测试、参考实现、错误或解答",
        ),
    ),
}

DEEDS = {  # what an escape managed to do
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

ALWAYS = {  # guarantees that depend on one layer each, which every machine has
    "memory": Text(
        "student code can find no answer, so that marks can only be earned",
        "学生代码找不到任何答案，分数只能靠做对得到",
    ),
    "environment": Text("student code learns no secret of the grader", "学生代码得不到评分者的任何秘密"),
    "limits": Text("student code comes to an end, whatever it does", "学生代码无论做什么都会被终止"),
}

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
        "grade as an ordinary user: the kernel does not limit root's threads",
        "以普通用户评分：内核不限制 root 的线程数",
    ),
    "environment": _FAULT,
    "memory": _FAULT,
    "capabilities": _FAULT,
}

NOT_LINUX = Text(
    "{system} has no namespaces, no Landlock and no seccomp: grading strangers' code needs Linux (a virtual machine or a "
    "container is enough). `autograder check` works here.",
    "{system} 没有命名空间、Landlock 和 seccomp：批改他人的代码需要 Linux（虚拟机或容器亦可）。autograder check 在这里可以使用。",
)
TRYING = Text("trying to break out of the sandbox …", "正在尝试逃出沙箱……")
NOT_STARTED = Text("No student's process could be started:", "无法启动学生进程：")
GOT_THROUGH = Text("got through: ", "未能阻止：")
TOO_SLOW = Text(
    "no answer in time, twice; try again when this machine is less busy",
    "两次都没有及时得到回答；请在机器空闲些时再试",
)
STOPPED_ANYWAY = Text("stopped, but also without this layer", "被阻止，但没有这一层时也被阻止")
NOT_ROOT = Text("grading does not run as root, and root was not gained", "评分不以 root 运行，也未能获得 root")
STOPPED = Text("stopped; succeeds without it: ", "被阻止；没有这一层则得逞：")
KEPT_BY = Text("kept by ", "由以下各层保证：")
SOUND = Text("Strangers' code may be graded on this machine.", "这台机器可以批改他人的代码。")
UNSOUND = Text("Strangers' code should not be graded on this machine.", "不应在这台机器上批改他人的代码。")
READ_MORE = Text(
    "What is promised, what is not, and how it is tested: SECURITY.md", "保证什么、不保证什么、如何测试：见 SECURITY.md"
)
