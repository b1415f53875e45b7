"""Prove each layer of the sandbox by an attempted escape.

Every layer is tried alone: an escape runs as student code in a process from which the layers that would also stop it
are left out, and what happened is judged from outside wherever it can be seen there. Then the layer itself is left
out, and the same escape must succeed; otherwise the first attempt proved nothing.
"""

import ast
import contextlib
import hashlib
import inspect
import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from . import escapes
from .catalogue import Limits, catalogue
from .verdicts import Broken, Verdict
from .witness import called, heard, listening, named, status_of
from .zygote import Zygote

PACKAGE = Path(__file__).parent
SALT = "AUTOGRADER_SALT"
LIMITS = next(iter(catalogue().values())).limits
SECONDS, MORE_SECONDS = 30, 150  # for one answer, at the first try and at the second
HOLDS, MISSING, UNPROVEN = "holds", "missing", "unproven"


@dataclass(frozen=True)
class Finding:
    """What became of one layer's escape."""

    layer: str
    status: str
    through: tuple[str, ...] = ()  # what succeeded in spite of the layer
    otherwise: tuple[str, ...] = ()  # what succeeds without it
    reason: str = ""
    slow: bool = False  # no answer in time, twice


@dataclass(frozen=True)
class Escape:
    attempt: Callable[["Bench"], set[str]]  # the names of what got through
    overlapping: tuple[str, ...] = ()  # layers that would stop it as well


class Laboratory:
    """Two warm interpreters, one behind a private root and one without, and a secret in their parent's environment."""

    def __init__(self):
        self.had_salt = SALT in os.environ
        os.environ.setdefault(SALT, secrets.token_hex(16))
        with ThreadPoolExecutor() as pool:
            starting = [pool.submit(Zygote, without=left_out) for left_out in ((), ("mount",))]
        self.zygotes = [zygote.result() for zygote in starting]

    def __enter__(self) -> "Laboratory":
        return self

    def __exit__(self, *failure) -> None:
        self.close()

    def close(self) -> None:
        for zygote in self.zygotes:
            zygote.close()
        if not self.had_salt:
            os.environ.pop(SALT, None)

    def bench(self, layer: str, left_out: tuple[str, ...], seconds: float, guarded: bool = True) -> "Bench":
        """Where one escape is tried: behind `layer` alone, or with that layer taken away too."""
        away = {*ESCAPES[layer].overlapping, *left_out, *(() if guarded else (layer,))}
        return Bench(self.zygotes["mount" in away], tuple(sorted(away)), seconds, guarded)


@dataclass
class Bench:
    zygote: Zygote
    left_out: tuple[str, ...]
    seconds: float  # how long an answer may take
    guarded: bool
    missing: dict[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def subject(self, **limits) -> Iterator["Subject"]:
        """A student's process with the usual limits, but for those named; without the guard all are four times higher."""
        allowed = vars(LIMITS) | limits
        if not self.guarded:
            allowed = {name: 4 * value for name, value in allowed.items()}
        process = self.zygote.spawn(Limits(**allowed), self.left_out)
        self.missing = process.missing_layers
        try:
            yield Subject(process, self.seconds)
        finally:
            process.end()


class Subject:
    """A student's process that does what we tell it."""

    def __init__(self, process, seconds: float = SECONDS):
        self.process, self.seconds = process, seconds

    def printed(self, function: Callable, *args, seconds: float | None = None) -> str:
        source = f"import json\n{inspect.getsource(function)}\nprint(json.dumps({function.__name__}(*{args!r})))"
        done = self.process.ask({"do": "cell", "source": source}, time.monotonic() + (seconds or self.seconds))["value"]
        if done["error"]:
            raise RuntimeError(f"{function.__name__}: {done['error']['kind']}: {done['error']['text']}")
        return done["output"]

    def run(self, function: Callable, *args, seconds: float | None = None):
        return json.loads(self.printed(function, *args, seconds=seconds).splitlines()[-1])


def prove(laboratory: Laboratory, layer: str, left_out: tuple[str, ...] = ()) -> Finding:
    """Try to escape past one layer, then without it. Slow is no verdict: without an answer in time, all is tried once more."""
    for seconds in (SECONDS, MORE_SECONDS):
        try:
            return _proved(laboratory, layer, left_out, seconds)
        except Exception as failed:
            if not isinstance(failed, Broken) or failed.verdict is not Verdict.TIMEOUT:
                return Finding(layer, UNPROVEN, reason=f"{type(failed).__name__}: {failed}")
    return Finding(layer, UNPROVEN, slow=True)


def _proved(laboratory: Laboratory, layer: str, left_out: tuple[str, ...], seconds: float) -> Finding:
    attempt = ESCAPES[layer].attempt
    bench = laboratory.bench(layer, left_out, seconds)
    through = attempt(bench)
    if through or layer in bench.missing:
        return Finding(layer, MISSING, tuple(sorted(through)), (), bench.missing.get(layer, ""))
    if layer == "user" and os.geteuid() != 0:
        return Finding(layer, HOLDS)  # there is no root to give up, and none was gained
    otherwise = attempt(laboratory.bench(layer, left_out, seconds, guarded=False))
    return Finding(layer, HOLDS if otherwise else UNPROVEN, (), tuple(sorted(otherwise)))


def _files(bench) -> set[str]:
    secret = secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as folder, bench.subject() as student:
        os.chmod(folder, 0o755)
        readable, writable = Path(folder, "readable"), Path(folder, "writable")
        readable.write_text(secret)
        writable.touch()
        writable.chmod(0o666)
        text = student.run(escapes.touch_files, str(readable), str(writable), secret)
        return _which(read=text == secret, written=writable.read_text() == secret)


def _network(bench) -> set[str]:
    with listening() as (ears, addresses), bench.subject() as student:
        student.run(escapes.call_out, *addresses)
        return {name for name, ear in ears.items() if heard(ear)}


def _processes(bench) -> set[str]:
    with named() as name:
        with bench.subject() as student:
            student.run(escapes.leave_a_process, name)
        return _which(survivor=called(name))


def _shared_memory(bench) -> set[str]:
    key = 1 + secrets.randbelow(2**31 - 2)
    with bench.subject() as student:
        student.run(escapes.share_memory, key, 4096)
        segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        student.run(escapes.share_memory, key, 0)
        return _which(segment=any(int(line.split()[0]) == key for line in segments))


def _identity(bench) -> set[str]:
    with named() as name, bench.subject() as student:
        student.run(escapes.become_root, name)
        return _which(root="0" in status_of(name)["Uid"].split())


def _privilege(bench) -> set[str]:
    with named() as name, bench.subject() as student:
        changed = student.run(escapes.use_privilege, name)
        return _which(chroot=changed, capability=int(status_of(name)["CapEff"], 16))


def _system_calls(bench) -> set[str]:
    with named() as name, named() as child, listening() as (ears, addresses), bench.subject() as student:
        student.run(escapes.call_out, *addresses)
        student.run(escapes.leave_a_process, child)
        forked = called(child)
        student.run(escapes.gain_privilege, name)
        spoke = any([heard(ear) for ear in ears.values()])
        return _which(socket=spoke, process=forked, namespace=int(status_of(name)["CapEff"], 16))


def _limits(bench) -> set[str]:
    with bench.subject() as student:
        through = set(student.run(escapes.exhaust, LIMITS.memory_mb // 512, LIMITS.file_mb * 2, LIMITS.processes * 2))
        printed = student.printed(escapes.flood, LIMITS.output_kb * 2)
        through |= _which(output=len(printed) >= LIMITS.output_kb * 2 * 1024)
    with named() as name, bench.subject() as student:
        with contextlib.suppress(Broken):
            student.run(escapes.sleep_for_ever, name, seconds=0.5)
        through |= _which(time=called(name))
    with bench.subject(cpu_seconds=1) as student:
        deadline = time.monotonic() + (bench.seconds if bench.guarded else 2)
        with contextlib.suppress(Broken):
            student.run(escapes.work_for_ever, seconds=deadline - time.monotonic())
        return through | _which(processor=time.monotonic() >= deadline)


def _environment(bench) -> set[str]:
    home, variables = _ask_or_do(bench, escapes.read_environment)
    return _which(salt=os.environ[SALT] in variables, home=home == str(Path.home()))


def _answers(bench) -> set[str]:
    digests, halves = answer_names()
    tops = ["/"] if bench.guarded else [str(PACKAGE)]
    whole = [first + second for first, second in halves]  # never sent, but here to be found without the layer
    found = _ask_or_do(bench, escapes.find_answers, digests, halves, tops)
    del whole
    return {where for where, _ in found}


def _ask_or_do(bench, function, *args):
    """Ask a student's process. This process itself is the one without the layer."""
    if not bench.guarded:
        return function(*args)
    with bench.subject() as student:
        return student.run(function, *args)


ESCAPES = {
    "mount": Escape(_files, ("landlock",)),
    "landlock": Escape(_files, ("mount",)),
    "network": Escape(_network, ("landlock", "seccomp")),
    "pid": Escape(_processes, ("seccomp",)),
    "ipc": Escape(_shared_memory, ("seccomp",)),
    "user": Escape(_identity, ("seccomp",)),
    "capabilities": Escape(_privilege, ("seccomp", "user")),
    "seccomp": Escape(_system_calls, ("landlock", "network")),
    "limits": Escape(_limits),
    "environment": Escape(_environment),
    "memory": Escape(_answers),
}


def answer_names() -> tuple[list[str], list[tuple[str, str]]]:
    """Names that only the grader knows: digests of all of them, and a few of the longest cut in two."""
    names = {"catalogue.toml", *catalogue(), *(f"{name}.ipynb" for name in catalogue())}
    long = set()
    for folder in ("suites", "reference", "mistakes"):
        for path in (PACKAGE / folder).glob("[!_]*.py"):
            names |= {path.name, path.stem}
            if folder != "reference":  # whose names a student writes too
                tree = ast.parse(path.read_text(encoding="utf-8"))
                found = [node.name for node in tree.body if hasattr(node, "name")]
                names |= {name for name in found if len(name) > 16}
                long.add(max(found, key=len))
    digests = [hashlib.blake2b(name.encode(), digest_size=8).hexdigest() for name in sorted(names)]
    return digests, [(name[: len(name) // 2], name[len(name) // 2 :]) for name in sorted(long)]


def _which(**happened) -> set[str]:
    return {name for name, did in happened.items() if did}
