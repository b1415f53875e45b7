"""Prove each layer of the sandbox by an attempted escape.

Every layer is tested alone: an escape runs as student code in a process without the other layers that would stop it.
What happened is judged from outside the process wherever possible. Then the layer itself is left out, and the same
escape must succeed; otherwise the first attempt proved nothing.
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
from typing import Any

from autograder.catalogue import Limits, catalogue
from autograder.course import PACKAGE
from autograder.isolation.process import StudentProcess
from autograder.isolation.zygote import Zygote
from autograder.verdicts import Broken, Verdict

from . import escapes
from .observe import listeners, pids_named, process_name, status_of, was_contacted

SALT = "AUTOGRADER_SALT"
LIMITS = next(iter(catalogue().values())).limits
SECONDS, MORE_SECONDS = 30, 150  # for one answer, at the first try and at the second
HOLDS, MISSING, UNPROVEN = "holds", "missing", "unproven"


@dataclass(frozen=True)
class Finding:
    """The result of testing one layer."""

    layer: str
    status: str
    through: tuple[str, ...] = ()  # what succeeded in spite of the layer
    otherwise: tuple[str, ...] = ()  # what succeeds without it
    reason: str = ""
    slow: bool = False  # no answer in time, twice


@dataclass(frozen=True)
class Escape:
    attempt: Callable[["Trial"], set[str]]  # the names of what got through
    overlapping: tuple[str, ...] = ()  # layers that would stop it as well


class Lab:
    """Two zygotes, one with a private root folder and one without, and a secret in the environment of this process."""

    def __init__(self) -> None:
        self.had_salt = SALT in os.environ
        os.environ.setdefault(SALT, secrets.token_hex(16))
        with ThreadPoolExecutor() as pool:
            starting = [pool.submit(Zygote, without=left_out) for left_out in ((), ("mount",))]
        self.with_root, self.without_root = (zygote.result() for zygote in starting)

    def __enter__(self) -> "Lab":
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        for zygote in (self.with_root, self.without_root):
            zygote.close()
        if not self.had_salt:
            os.environ.pop(SALT, None)

    def trial(self, layer: str, left_out: tuple[str, ...], seconds: float, guarded: bool = True) -> "Trial":
        """The setup for one escape: with `layer` alone, or without it too if `guarded` is False."""
        away = {*ESCAPES[layer].overlapping, *left_out, *(() if guarded else (layer,))}
        return Trial(self.without_root if "mount" in away else self.with_root, tuple(sorted(away)), seconds, guarded)


@dataclass
class Trial:
    """One attempt to escape: from which zygote, without which layers, and with how much time."""

    zygote: Zygote
    left_out: tuple[str, ...]
    seconds: float  # how long an answer may take
    guarded: bool
    missing: dict[str, str] = field(default_factory=dict)

    @contextlib.contextmanager
    def probe(self, **limits: int) -> Iterator["Probe"]:
        """A student's process with the usual limits, except those given. If not `guarded`, all are four times higher."""
        allowed = vars(LIMITS) | limits
        if not self.guarded:
            allowed = {name: 4 * value for name, value in allowed.items()}
        process = StudentProcess.spawn(self.zygote, Limits(**allowed), self.left_out)
        self.missing = process.missing_layers
        try:
            yield Probe(process, self.seconds)
        finally:
            process.end()


class Probe:
    """A student's process in which we run functions."""

    def __init__(self, process: StudentProcess, seconds: float = SECONDS):
        self.process, self.seconds = process, seconds

    def printed(self, function: Callable[..., Any], *args: Any, seconds: float | None = None) -> str:
        source = f"import json\n{inspect.getsource(function)}\nprint(json.dumps({function.__name__}(*{args!r})))"
        done = self.process.ask({"do": "cell", "source": source}, time.monotonic() + (seconds or self.seconds))["value"]
        if done["error"]:
            raise RuntimeError(f"{function.__name__}: {done['error']['kind']}: {done['error']['text']}")
        return str(done["output"])

    def run(self, function: Callable[..., Any], *args: Any, seconds: float | None = None) -> Any:
        return json.loads(self.printed(function, *args, seconds=seconds).splitlines()[-1])


def prove(lab: Lab, layer: str, left_out: tuple[str, ...] = ()) -> Finding:
    """Try to escape with one layer, then without it. If an answer does not come in time, everything is tried once more."""
    for seconds in (SECONDS, MORE_SECONDS):
        try:
            return _proved(lab, layer, left_out, seconds)
        except Exception as failed:
            if not isinstance(failed, Broken) or failed.verdict is not Verdict.TIMEOUT:
                return Finding(layer, UNPROVEN, reason=f"{type(failed).__name__}: {failed}")
    return Finding(layer, UNPROVEN, slow=True)


def _proved(lab: Lab, layer: str, left_out: tuple[str, ...], seconds: float) -> Finding:
    attempt = ESCAPES[layer].attempt
    trial = lab.trial(layer, left_out, seconds)
    through = attempt(trial)
    if through or layer in trial.missing:
        return Finding(layer, MISSING, tuple(sorted(through)), (), trial.missing.get(layer, ""))
    if layer == "user" and os.geteuid() != 0:
        return Finding(layer, HOLDS)  # grading does not run as root, and the escape did not become root
    otherwise = attempt(lab.trial(layer, left_out, seconds, guarded=False))
    return Finding(layer, HOLDS if otherwise else UNPROVEN, (), tuple(sorted(otherwise)))


def _files(trial: Trial) -> set[str]:
    secret = secrets.token_hex(16)
    with tempfile.TemporaryDirectory() as folder, trial.probe() as student:
        os.chmod(folder, 0o755)
        readable, writable = Path(folder, "readable"), Path(folder, "writable")
        readable.write_text(secret)
        writable.touch()
        writable.chmod(0o666)
        text = student.run(escapes.touch_files, str(readable), str(writable), secret)
        return _which(read=text == secret, written=writable.read_text() == secret)


def _network(trial: Trial) -> set[str]:
    with listeners() as (sockets, addresses), trial.probe() as student:
        student.run(escapes.call_out, *addresses)
        return {name for name, listener in sockets.items() if was_contacted(listener)}


def _processes(trial: Trial) -> set[str]:
    with process_name() as name:
        with trial.probe() as student:
            student.run(escapes.leave_a_process, name)
        return _which(survivor=pids_named(name))


def _shared_memory(trial: Trial) -> set[str]:
    key = 1 + secrets.randbelow(2**31 - 2)
    with trial.probe() as student:
        student.run(escapes.share_memory, key, 4096)
        segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        student.run(escapes.share_memory, key, 0)
        return _which(segment=any(int(line.split()[0]) == key for line in segments))


def _identity(trial: Trial) -> set[str]:
    with process_name() as name, trial.probe() as student:
        student.run(escapes.become_root, name)
        return _which(root="0" in status_of(name)["Uid"].split())


def _privilege(trial: Trial) -> set[str]:
    with process_name() as name, trial.probe() as student:
        changed = student.run(escapes.use_privilege, name)
        return _which(chroot=changed, capability=int(status_of(name)["CapEff"], 16))


def _system_calls(trial: Trial) -> set[str]:
    with process_name() as name, process_name() as child, listeners() as (sockets, addresses), trial.probe() as student:
        student.run(escapes.call_out, *addresses)
        student.run(escapes.leave_a_process, child)
        forked = pids_named(child)
        student.run(escapes.gain_privilege, name)
        connected = any([was_contacted(listener) for listener in sockets.values()])
        return _which(socket=connected, process=forked, namespace=int(status_of(name)["CapEff"], 16))


def _limits(trial: Trial) -> set[str]:
    with trial.probe() as student:
        through = set(student.run(escapes.exhaust, LIMITS.memory_mb // 512, LIMITS.file_mb * 2, LIMITS.processes * 2))
        printed = student.printed(escapes.flood, LIMITS.output_kb * 2)
        through |= _which(output=len(printed) >= LIMITS.output_kb * 2 * 1024)
    with process_name() as name, trial.probe() as student:
        with contextlib.suppress(Broken):
            student.run(escapes.sleep_forever, name, seconds=0.5)
        through |= _which(time=pids_named(name))
    with trial.probe(cpu_seconds=1) as student:
        deadline = time.monotonic() + (trial.seconds if trial.guarded else 2)
        with contextlib.suppress(Broken):
            student.run(escapes.work_forever, seconds=deadline - time.monotonic())
        return through | _which(processor=time.monotonic() >= deadline)


def _environment(trial: Trial) -> set[str]:
    home, variables = _ask_or_do(trial, escapes.read_environment)
    return _which(salt=os.environ[SALT] in variables, home=home == str(Path.home()))


def _answers(trial: Trial) -> set[str]:
    digests, halves = answer_names()
    tops = ["/"] if trial.guarded else [str(PACKAGE)]
    bait = [first + second for first, second in halves]  # whole names in this process, for the search to find
    found = _ask_or_do(trial, escapes.find_answers, digests, halves, tops)
    return {where for where, _ in found if bait}


def _ask_or_do(trial: Trial, function: Callable[..., Any], *args: Any) -> Any:
    """Run the function in a student's process. If not `guarded`, run it in this process, which has no such layer."""
    if not trial.guarded:
        return function(*args)
    with trial.probe() as student:
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
    for folder, pattern in (("suites", "test_*.py"), ("reference", "ch*.py"), ("mistakes", "ch*.py")):
        for path in (PACKAGE / folder).glob(pattern):
            names |= {path.name, path.stem}
            if folder != "reference":  # students write these names too
                tree = ast.parse(path.read_text(encoding="utf-8"))
                found = [node.name for node in tree.body if hasattr(node, "name")]
                names |= {name for name in found if len(name) > 16}
                long.add(max(found, key=len))
    digests = [hashlib.blake2b(name.encode(), digest_size=8).hexdigest() for name in sorted(names)]
    return digests, [(name[: len(name) // 2], name[len(name) // 2 :]) for name in sorted(long)]


def _which(**happened: object) -> set[str]:
    return {name for name, did in happened.items() if did}
