"""Isolate a student's process, so that it can harm only itself.

Stops: endless loops, memory past the limit, new processes, the network, signals to other processes, writing outside its
scratch folder, seeing any file except Python and its libraries.
Does not stop: a flaw in the kernel, or measuring how busy the machine is. Keep nothing secret on the grading machine.

The layers are independent. Each is tried, the missing ones are reported, and the trusted side decides whether the rest
is enough. The zygote calls `wall` once; every student's process calls `enter` before student code runs.
"""

import contextlib
import os
import resource
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypedDict

from . import kernel, landlock, seccomp

NOBODY = 65534
INSIDE_ID = 1000
SCRATCH = "/.scratch"  # a name that no machine uses: Python itself may be installed anywhere, even below /tmp
MEGABYTE = 2**20
LEFT_OUT = "left out on purpose"


class Limits(TypedDict):
    """The limits of the catalogue that the kernel enforces."""

    cpu_seconds: int
    memory_mb: int | None  # None on a GPU, whose driver reserves more addresses than there is memory
    processes: int
    file_mb: int


@dataclass
class View:
    """What a student's process may see of the machine's files."""

    readable: list[str]  # Python, its libraries, system libraries, devices
    hidden: list[str]  # folders below those that must not be seen: this package, the course
    spare: str  # holds the scratch folders if there are no mount namespaces
    without: frozenset[str] = frozenset()  # layers left out on purpose, to test the others

    def visible_children(self) -> list[str]:
        """`readable`, split into folders that contain nothing hidden."""
        found: list[str] = []
        for place in self.readable:
            found += _without_hidden(place, self.hidden)
        return found


@dataclass
class Wall:
    """What the zygote has prepared for its students."""

    view: View
    is_root: bool = False  # grading runs as root; the student's process must not
    may_mount: bool = False  # root may leave the machine's namespaces without a user namespace
    root_is_private: bool = False
    missing: dict[str, str] = field(default_factory=dict)

    def leaving_out(self, layers: list[str]) -> "Wall":
        """The same wall for a student's process that also leaves out these layers."""
        return replace(self, view=replace(self.view, without=self.view.without | set(layers)))


def wall(view: View) -> Wall:
    """Give this process, and all its forks, a root folder that contains only what `view` names."""
    is_root = os.geteuid() == 0
    built = Wall(view, is_root, is_root and _may_mount())
    if "mount" in view.without:
        built.missing["mount"] = LEFT_OUT
        return built
    try:
        if built.may_mount:
            kernel.unshare(kernel.CLONE_NEWNS)
        else:
            _own_user_namespace(kernel.CLONE_NEWNS)
        _private_root(view)
        built.root_is_private = True
    except OSError as refused:
        built.missing["mount"] = str(refused)
    return built


def enter(wall: Wall, limits: Limits, proc: int, scratch: str, parent_death: int) -> dict[str, str]:
    """Isolate this process. Returns the layers that do not hold, with the reasons."""
    missing = dict(wall.missing)
    left_out = wall.view.without
    base = int(_read(proc, "self/statm").split()[0]) * resource.getpagesize()
    if wall.may_mount:
        _leave_namespaces(wall, limits, kernel.unshare, missing)
    if wall.is_root:
        _try("user", missing, left_out, lambda: _become_nobody(wall, scratch))
    if wall.may_mount:
        with contextlib.suppress(OSError):  # so that the threads of each student are counted separately
            _own_user_namespace(0, proc)
    else:
        _leave_namespaces(wall, limits, lambda flags: _own_user_namespace(flags, proc), missing)
    os.chdir(scratch)
    os.environ.update(
        dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR", "TORCHINDUCTOR_CACHE_DIR"), scratch)
    )
    tempfile.tempdir = scratch  # Python may have cached another folder
    _limit(limits, base)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, parent_death)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # so that a supervisor that is not root may measure its memory
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    _try("landlock", missing, left_out, lambda: _landlock(wall, scratch))
    _try("capabilities", missing, left_out, kernel.drop_capabilities)
    _try("seccomp", missing, left_out, seccomp.install)
    return missing


def _try(layer: str, missing: dict[str, str], left_out: frozenset[str], build: Callable[[], None]) -> None:
    if layer in left_out:
        missing[layer] = LEFT_OUT
        return
    try:
        build()
    except (OSError, KeyError) as refused:
        missing[layer] = str(refused)


def _leave_namespaces(wall: Wall, limits: Limits, leave: Callable[[int], None], missing: dict[str, str]) -> None:
    """Leave the machine's network and shared memory, and mount a scratch folder that only this process has."""
    flags = {"network": kernel.CLONE_NEWNET, "ipc": kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS}
    missing |= dict.fromkeys(flags.keys() & wall.view.without, LEFT_OUT)
    wanted = sorted(flags.keys() - wall.view.without)
    try:
        leave(sum(flags[name] for name in wanted) | (kernel.CLONE_NEWNS if wall.root_is_private else 0))
    except OSError as refused:
        missing |= dict.fromkeys(["namespaces", *wanted], str(refused))
        return
    if wall.root_is_private:
        options = f"size={limits['file_mb'] * 4}m,nr_inodes=10000,mode=700"
        kernel.mount("tmpfs", SCRATCH, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC, options)


def _become_nobody(wall: Wall, scratch: str) -> None:
    """Stop being root, forever."""
    if not _others_may_read(wall):
        raise OSError("grading runs as root, and no other user can read Python's libraries and the temporary folder")
    os.chown(scratch, NOBODY, NOBODY)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # otherwise it may not write its own user map


def _landlock(wall: Wall, scratch: str) -> None:
    landlock.restrict(["/"] if wall.root_is_private else wall.view.visible_children(), [scratch, "/dev/null"])


def _limit(limits: Limits, base: int) -> None:
    """Set the resource limits. `base` is the memory in bytes that this process uses already."""
    bounds = {
        resource.RLIMIT_CPU: limits["cpu_seconds"],
        resource.RLIMIT_FSIZE: limits["file_mb"] * MEGABYTE,
        resource.RLIMIT_NPROC: limits["processes"],
        resource.RLIMIT_NOFILE: 128,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
    }
    if limits["memory_mb"]:
        bounds[resource.RLIMIT_AS] = base + limits["memory_mb"] * MEGABYTE
    for kind, bound in bounds.items():
        hard = resource.getrlimit(kind)[1]
        bound = int(bound) if hard == resource.RLIM_INFINITY else min(int(bound), hard)
        resource.setrlimit(kind, (bound, bound))


def _may_mount() -> bool:
    """Whether this process has CAP_SYS_ADMIN (bit 21)."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> 21 & 1)


def _own_user_namespace(others: int, proc: int | None = None) -> None:
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | others)
    folder = proc if proc is not None else os.open("/proc", os.O_PATH)
    _write(folder, "self/setgroups", "deny")
    _write(folder, "self/uid_map", f"{INSIDE_ID} {user} 1")
    _write(folder, "self/gid_map", f"{INSIDE_ID} {group} 1")
    if proc is None:
        os.close(folder)


def _private_root(view: View) -> None:
    root = view.spare
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=8m,mode=755")
    os.umask(0o022)
    for place in sorted(set(view.readable), key=len):
        _show(root, place)
    for place in view.hidden:
        if os.path.isdir(root + place):
            kernel.mount("tmpfs", root + place, "tmpfs", kernel.MS_RDONLY, "size=1m,mode=755")
    for folder in (SCRATCH, "/old"):
        os.makedirs(root + folder, exist_ok=True)
    if not os.path.lexists(root + "/tmp"):
        os.symlink(SCRATCH, root + "/tmp")
    kernel.pivot_root(root, root + "/old")
    os.chdir("/")
    kernel.unmount("/old")
    os.rmdir("/old")
    kernel.mount("none", "/", None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID)


def _show(root: str, place: str) -> None:
    """Make one folder, file or device of the machine visible below the new root, read-only."""
    target = root + place
    if os.path.islink(place):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.readlink(place), target)
        return
    if os.path.lexists(target) or not os.path.exists(place):  # visible already, or not on this machine
        return
    if os.path.isdir(place):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.mount(place, target, None, kernel.MS_BIND | kernel.MS_REC)
    if not place.startswith("/dev/"):
        flags = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID
        try:
            kernel.mount("none", target, None, flags)
        except PermissionError:  # in a user namespace, flags of the original mount are locked: repeat them
            kernel.mount("none", target, None, flags | _locked_flags(place))


def _locked_flags(place: str) -> int:
    found = os.statvfs(place).f_flag
    names = {os.ST_NODEV: kernel.MS_NODEV, os.ST_NOEXEC: kernel.MS_NOEXEC, os.ST_NOATIME: 1024, os.ST_RELATIME: 1 << 21}
    return sum(ours for theirs, ours in names.items() if found & theirs)


def _without_hidden(place: str, hidden: list[str]) -> list[str]:
    if any(_below(place, h) for h in hidden):
        return []
    if not any(_below(h, place) for h in hidden):
        return [place]
    return [leaf for child in os.scandir(place) for leaf in _without_hidden(child.path, hidden)]


def _below(place: str, folder: str) -> bool:
    return place == folder or place.startswith(folder.rstrip("/") + "/")


def _others_may_read(wall: Wall) -> bool:
    """Whether an ordinary user can read the libraries and the scratch folder. In a private root only their own modes matter."""
    for place in filter(os.path.exists, [*wall.view.readable, wall.view.spare]):
        needed = 0o005 if os.path.isdir(place) else 0o004
        if os.stat(place).st_mode & needed != needed:
            return False
        while not wall.root_is_private and (place := os.path.dirname(place)) != "/":
            if not os.stat(place).st_mode & 0o001:
                return False
    return True


def _read(folder: int, name: str) -> str:
    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=folder)) as file:
        return file.read()


def _write(folder: int, name: str, text: str) -> None:
    file = os.open(name, os.O_WRONLY, dir_fd=folder)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def clear(folder: str) -> None:
    """Remove a student's files, even if their modes forbid it. The student's process has ended by now."""
    for here, folders, _ in os.walk(folder):
        for path in (os.path.join(here, name) for name in folders):
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
