"""What attacks aim at: a class folder with planted secrets, and sockets that notice a process that escaped.

An attack is told every path and number that it could need: `Target.filled` replaces `@OUT@`, `@NEIGHBOUR@` and other names in
its source. Whatever an attack leaves on the machine is found by `@MARK@`.
"""

import contextlib
import os
import secrets
import shutil
import socket
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from autograder.checks.observe import listeners, pids_named, was_contacted
from autograder.student.sandbox import kernel

ROOT = Path(__file__).parents[2]
PUBLIC = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run")
SUBREAPER = 36


@dataclass
class Target:
    """One class folder, and everything around it that an attack could aim at."""

    folder: Path
    token: str = field(default_factory=lambda: secrets.token_hex(6))
    addresses: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        self.canaries = {name: secrets.token_hex(12) for name in ("salt", "environment", "home", "neighbour")}
        for place in (self.submitted, self.home, self.temporary):
            place.mkdir()
        (self.home / "secret.txt").write_text(self.canaries["home"])
        (self.home / "secret.txt").chmod(0o644)

    submitted = property(lambda self: self.folder / "submitted")
    out = property(lambda self: self.folder / "out")
    home = property(lambda self: self.folder / "home")
    temporary = property(lambda self: self.folder / "temporary")
    gradebook = property(lambda self: self.folder / "gradebook.db")
    neighbour = property(lambda self: self.submitted / "neighbour" / "06_masks" / "06_masks.py")

    def environment(self) -> dict[str, str]:
        """The environment of the grader's own process."""
        hidden = {"AUTOGRADER_SALT": self.canaries["salt"], "SECRET_TOKEN": self.canaries["environment"]}
        return {
            **os.environ,
            **hidden,
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "AUTOGRADER_LANG": "en",
            "PYTHONPATH": str(ROOT),
        }

    def mark(self, attack: str) -> str:
        return f"{self.token}-{zlib.crc32(attack.encode()):08x}"

    def process_name(self, attack: str) -> str:
        """At most 15 characters, because the kernel keeps no more."""
        return self.mark(attack)[-15:]

    def key(self, attack: str) -> int:
        """The key of the attack's shared memory."""
        return zlib.crc32(self.mark(attack).encode()) >> 1 | 1

    def filled(self, source: str, attack: str) -> str:
        words = {
            "MARK": self.mark(attack), "COMM": self.process_name(attack), "KEY": self.key(attack), "OUT": self.out,
            "NEIGHBOUR": self.neighbour, "HOME": self.home, "SUBMITTED": self.submitted, "GRADEBOOK": self.gradebook,
            "PACKAGE": ROOT / "autograder", "UNIX": self.folder / "listener", **self.addresses,
        }  # fmt: skip
        for word, meaning in words.items():
            source = source.replace(f"@{word}@", str(meaning))
        return source

    def handed_in(self) -> dict[str, tuple]:
        """Every file in the class folder, so that a change can be noticed."""
        seen = {}
        for here, folders, names in os.walk(self.submitted):
            for name in folders + names:
                about = os.lstat(os.path.join(here, name))
                seen[os.path.join(here, name)] = (about.st_mode, about.st_size, about.st_mtime_ns)
        return seen

    def left_by(self, attack: str) -> list[str]:
        """Whatever has this attack's mark outside the class folder: files, processes, sockets, shared memory."""
        mark = self.mark(attack)
        places = [*PUBLIC, self.folder, self.temporary, self.home, self.out, ROOT / "autograder", *sys.path]
        files = [str(path) for place in places if os.path.isdir(place) for path in Path(place).glob(f"*{mark}*")]
        sockets = [line for line in Path("/proc/net/unix").read_text().splitlines() if mark in line]
        processes = [f"process {pid}" for pid in pids_named(self.process_name(attack))]
        shared = []
        for kind in ("shm", "sem", "msg"):
            lines = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]
            shared += [f"{kind} {line}" for line in lines if int(line.split()[0]) == self.key(attack)]
        return files + sockets + processes + shared


@contextlib.contextmanager
def new_target() -> Iterator[Target]:
    """A class folder that everybody may read, as a careless administrator would leave it, and listening sockets."""
    folder = Path(tempfile.mkdtemp(prefix="attacked-", dir="/tmp"))
    folder.chmod(0o755)
    target = Target(folder)
    target.temporary.chmod(0o1777)
    with listeners() as (sockets, (tcp, udp, abstract)), socket.socket(socket.AF_UNIX) as unix:
        unix.setblocking(False)
        unix.bind(str(folder / "listener"))
        unix.listen()
        os.chmod(folder / "listener", 0o777)
        target.listeners = {**sockets, "unix": unix}
        target.addresses = {"TCP": str(tcp), "UDP": str(udp), "ABSTRACT": abstract}
        try:
            yield target
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def contacted(target: Target) -> list[str]:
    """The sockets that somebody has reached."""
    return [name for name, listener in target.listeners.items() if was_contacted(listener)]


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Orphaned processes become children of this process, so that none is overlooked."""
    kernel.prctl(SUBREAPER, 1)
    try:
        yield
    finally:
        kernel.prctl(SUBREAPER, 0)


def family() -> dict[int, str]:
    """All living descendants of this process, with their names."""
    parents, names = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            before, _, after = path.read_text().rpartition(")")
            state, parent = after.split()[:2]
            if state != "Z":
                pid = int(path.parent.name)
                parents[pid], names[pid] = int(parent), before.partition("(")[2]
    found = [os.getpid()]
    for parent in found:
        found += [pid for pid, its_parent in parents.items() if its_parent == parent]
    return {pid: names[pid] for pid in found[1:]}
