"""Start the zygote: the interpreter with everything imported, from which students' processes are forked.

Importing torch takes seconds. This module does not import it, so the zygote can start while its owner imports the rest.
"""

import atexit
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import weakref
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from autograder.catalogue import Limits
from autograder.course import PACKAGE
from autograder.errors import UserError

STUDENT_SIDE = PACKAGE / "student"
PRELOAD = ("torch", "numpy", "safetensors", "IPython", "matplotlib", "matplotlib.pyplot")
SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/fonts")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
START_SECONDS = 120
END_SECONDS = 10

_shared: dict[str, "Zygote"] = {}


def shared(device: str = "cpu") -> "Zygote":
    """The zygote of this process. It starts at the first call; only the first student has to wait for it."""
    if device not in _shared:
        _shared[device] = Zygote(device, wait=False)
        atexit.register(_shared[device].close)
    return _shared[device]


class ZygoteError(UserError):
    """The zygote could not be started; the message contains what it printed."""


class Zygote:
    """An interpreter in a private root folder, with everything imported, from which students' processes are forked."""

    def __init__(self, device: str = "cpu", without: tuple[str, ...] = (), wait: bool = True):
        self.device, self.without = device, tuple(without)
        self._start()
        if wait:
            self.wait_until_ready()

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
        self.ready = False

    def wait_until_ready(self) -> None:
        """Wait until the zygote has imported everything."""
        if self.ready:
            return
        self.control.settimeout(START_SECONDS)
        try:
            ready = self.control.recv(1)
        except TimeoutError:
            ready = b""
        if ready != b"R":
            raise self.failure()
        self.ready = True

    def failure(self) -> ZygoteError:
        """Close the zygote, and return an error that says why it did not start."""
        size = os.fstat(self.log.fileno()).st_size
        printed = os.pread(self.log.fileno(), 4000, max(0, size - 4000)).decode(errors="replace")
        self.close()
        return ZygoteError(
            f"the process that runs student code did not start:\n{printed}", f"运行学生代码的进程没有启动：\n{printed}"
        )

    def _settings(self, control: int) -> dict[str, Any]:
        origins = [spec.origin for name in PRELOAD[:5] if (spec := importlib.util.find_spec(name))]
        libraries = sorted({str(Path(origin).parents[1]) for origin in origins if origin})
        readable = [*libraries, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
        readable += [os.path.join(sys.base_prefix, "lib"), *SYSTEM, *DEVICES]
        if self.device == "cuda":
            readable += [str(path) for path in Path("/dev").glob("nvidia*")] + ["/proc", "/sys"]
        hidden = [str(place) for place in (PACKAGE, PACKAGE.parent) if _is_below_any(place, readable)]
        if str(PACKAGE.parent) in map(os.path.realpath, libraries):  # installed among the libraries themselves
            hidden = [str(PACKAGE)]
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
        fixed = {"LANG": "C.UTF-8", "PATH": "", "MPLBACKEND": "agg", "MPLCONFIGDIR": str(cache)}
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        # Freed memory goes back to the system at once, so the peak is the memory that was really used.
        malloc = {"MALLOC_MMAP_THRESHOLD_": str(2**16)}
        # This folder is removed together with the zygote.
        spare = dict.fromkeys(("TMPDIR", "IPYTHONDIR", "TORCHINDUCTOR_CACHE_DIR"), self.spare)
        return fixed | spare | one_thread | malloc | kept

    def fork(self, limits: Limits, without: tuple[str, ...] = ()) -> tuple[socket.socket, socket.socket]:
        """Request a student's process. Returns our ends of its connection and of its supervisor's reports."""
        self.wait_until_ready()
        connection, student_connection = socket.socketpair()
        status, supervisor_status = socket.socketpair()
        wanted = asdict(limits)
        if self.device == "cuda":
            wanted["memory_mb"] = None
        order = {"limits": wanted, "device": self.device, "without": without}
        try:
            with student_connection, supervisor_status:
                descriptors = [student_connection.fileno(), supervisor_status.fileno()]
                socket.send_fds(self.control, [json.dumps(order).encode()], descriptors)
            return connection, status
        except BaseException:
            connection.close()
            status.close()
            raise

    def restart(self) -> None:
        self.close()
        self._start()

    def close(self) -> None:
        self._cleaner()


def _end_zygote(process: subprocess.Popen[bytes], control: socket.socket, spare: str, log: IO[bytes]) -> None:
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
