"""The trusted end of the student's process: start it, ask it, end it.

Whatever happens beyond the trust line (silence, a crash, a forged message) becomes a `Broken` here, never a pass.
"""

import json
import select
import signal
import socket
import time

from .catalogue import Limits
from .student import wire
from .verdicts import Broken, Verdict
from .zygote import END_SECONDS, START_SECONDS


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
