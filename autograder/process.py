"""The trusted end of the student's process: start it, ask it, end it.

Whatever happens beyond the trust line (silence, a crash, a forged message) becomes a `Broken` here, never a pass.
"""

import importlib.util
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import weakref
from dataclasses import asdict
from pathlib import Path

from .catalogue import Limits
from .student import wire
from .verdicts import Broken, Verdict

STUDENT_SIDE = Path(__file__).parent / "student"
PRELOAD = ("torch", "numpy", "safetensors", "IPython", "matplotlib", "matplotlib.pyplot")
SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/fonts")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
START_SECONDS = 120
END_SECONDS = 10


class ZygoteError(RuntimeError):
    """The zygote could not be started; the message holds what it printed."""


class Zygote:
    """A warm interpreter in a private root, from which students' processes are forked."""

    def __init__(self, device: str = "cpu", without: tuple[str, ...] = ()):
        self.device, self.without = device, tuple(without)
        self._start()

    def _start(self) -> None:
        self.spare = tempfile.mkdtemp(prefix="autograder-")
        os.chmod(self.spare, 0o755)
        self.control, theirs = socket.socketpair()
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 — the cleaner closes it
        with theirs:
            settings = self._settings(theirs.fileno())
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(STUDENT_SIDE / "boot.py"), json.dumps(settings)],
                env=self._environment(),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.log,
                cwd="/",
                start_new_session=True,
            )
        self._cleaner = weakref.finalize(self, _end_zygote, self.process, self.control, self.spare, self.log)
        self.control.settimeout(START_SECONDS)
        try:
            ready = self.control.recv(1)
        except TimeoutError:
            ready = b""
        if ready != b"R":
            raise self._failure()

    def _failure(self) -> ZygoteError:
        size = os.fstat(self.log.fileno()).st_size
        printed = os.pread(self.log.fileno(), 4000, max(0, size - 4000)).decode(errors="replace")
        self.close()
        return ZygoteError(f"the process that runs student code did not start:\n{printed}")

    def _settings(self, control: int) -> dict:
        libraries = sorted({str(Path(importlib.util.find_spec(name).origin).parents[1]) for name in PRELOAD[:5]})
        readable = [*libraries, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
        readable += [os.path.join(sys.base_prefix, "lib"), *SYSTEM, *DEVICES]
        if self.device == "cuda":
            readable += [str(path) for path in Path("/dev").glob("nvidia*")] + ["/proc", "/sys"]
        package = Path(__file__).resolve().parent
        hidden = [str(place) for place in (package, package.parent) if _is_below_any(place, readable)]
        if str(package.parent) in map(os.path.realpath, libraries):  # installed among the libraries themselves
            hidden = [str(package)]
        return {
            "control": control,
            "libraries": libraries,
            "readable": readable,
            "hidden": hidden,
            "spare": self.spare,
            "preload": PRELOAD,
            "without": self.without,
        }

    def _environment(self) -> dict[str, str]:
        cache = Path.home() / ".cache" / "autograder" / "matplotlib"
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError:
            cache = Path(self.spare)
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES") if name in os.environ}
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        spare = dict.fromkeys(
            ("TMPDIR", "IPYTHONDIR", "TORCHINDUCTOR_CACHE_DIR"), self.spare
        )  # goes when the zygote goes
        return {"LANG": "C.UTF-8", "PATH": "", "MPLBACKEND": "agg", "MPLCONFIGDIR": str(cache), **spare, **one, **kept}

    def spawn(self, limits: Limits, without: tuple[str, ...] = ()) -> "StudentProcess":
        """Fork a student's process and wait until it is shut in. `without` leaves out layers, to test the others."""
        try:
            return self._spawn(limits, without)
        except (OSError, EOFError, wire.WireError):  # the zygote was killed: start another, once
            self.close()
            self._start()
        try:
            return self._spawn(limits, without)
        except (OSError, EOFError, wire.WireError):
            raise self._failure() from None

    def _spawn(self, limits, without):
        connection, student_connection = socket.socketpair()
        status, supervisor_status = socket.socketpair()
        order = {"limits": asdict(limits), "device": self.device, "without": without}
        if self.device == "cuda":
            order["limits"]["memory_mb"] = None
        try:
            with student_connection, supervisor_status:
                descriptors = [student_connection.fileno(), supervisor_status.fileno()]
                socket.send_fds(self.control, [json.dumps(order).encode()], descriptors)
            return StudentProcess(connection, status, limits)
        except BaseException:
            connection.close()
            status.close()
            raise

    def close(self) -> None:
        self._cleaner()


def _end_zygote(process, control, spare, log) -> None:
    control.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    shutil.rmtree(spare, ignore_errors=True)
    log.close()


def _is_below_any(place: Path, folders: list[str]) -> bool:
    return any(place.is_relative_to(os.path.realpath(folder)) for folder in folders)


class StudentProcess:
    """One forked process, from its first message to its end."""

    def __init__(self, connection: socket.socket, status: socket.socket, limits: Limits):
        self.connection, self.status, self.limits = connection, status, limits
        hello = wire.receive(connection, time.monotonic() + START_SECONDS)
        self.missing_layers: dict[str, str] = hello["missing"]

    def ask(self, request: dict, deadline: float) -> dict:
        """One request, one answer; `Broken` (fatal) when there is none."""
        try:
            wire.send(self.connection, request, deadline)
            return wire.receive(self.connection, deadline)
        except TimeoutError:
            self.end()
            raise too_slow() from None
        except (EOFError, OSError):
            raise self._obituary() from None
        except wire.WireError as forged:
            self.end()
            raise Broken(
                Verdict.POLICY, f"the answer cannot be read ({forged})", f"无法读取回答（{forged}）", fatal=True
            ) from None

    def memory(self, forget_peak: bool = False) -> dict[str, int]:
        """The kernel's own count of the process's memory, in kB: VmRSS now and VmHWM at its peak."""
        self.status.settimeout(END_SECONDS)
        self.status.sendall(b"R" if forget_peak else b"M")
        return json.loads(_line(self.status))

    def end(self) -> dict:
        """Kill the process, if it still lives, and learn how it ended. Nothing is learnt a second time."""
        try:
            self.status.settimeout(END_SECONDS)
            self.status.shutdown(socket.SHUT_WR)
            return json.loads(_line(self.status))
        except (OSError, ValueError, TimeoutError):
            return {"exit": None, "peak_kb": 0, "cpu_seconds": 0.0}
        finally:
            self.connection.close()
            self.status.close()

    def _obituary(self) -> Broken:
        """The process is gone of its own accord: what did it die of?"""
        select.select([self.status], [], [], END_SECONDS)
        ended = self.end()
        code = ended["exit"]
        # Past its processor time the first process of a namespace gets SIGKILL, not SIGXCPU. The kernel counts that time
        # in ticks, which may differ from the exact time by a fifth; half of it tells this death from others.
        used_up = code == -signal.SIGKILL and ended["cpu_seconds"] > self.limits.cpu_seconds / 2
        if used_up or code == -signal.SIGXCPU:
            return too_slow()
        if code in (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS):
            name = signal.Signals(-code).name
            return Broken(
                Verdict.ERROR, f"the code crashed Python ({name})", f"代码使 Python 崩溃（{name}）", fatal=True
            )
        return Broken(Verdict.ERROR, "the code ended the process", "代码结束了进程", fatal=True)


def too_slow() -> Broken:
    return Broken(
        Verdict.TIMEOUT, "no answer in time: does it loop for ever?", "没有在时限内回答：是不是死循环？", fatal=True
    )


def _line(connection: socket.socket) -> bytes:
    received = b""
    while not received.endswith(b"\n"):
        part = connection.recv(4096)
        if not part:
            break
        received += part
    return received
