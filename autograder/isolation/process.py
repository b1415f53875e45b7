"""The trusted end of the student's process: start it, ask it questions, end it.

Anything that goes wrong beyond the trust line (silence, a crash, a forged message) becomes a `Broken`, never a pass.
"""

import json
import select
import signal
import socket
import time
from typing import Any

from autograder.catalogue import Limits
from autograder.student import wire
from autograder.student.wire import Answer, Request
from autograder.verdicts import Broken, Verdict

from .zygote import END_SECONDS, START_SECONDS, Zygote


class StudentProcess:
    """One forked process, from its first message to its end."""

    def __init__(self, connection: socket.socket, status: socket.socket, limits: Limits):
        self.connection, self.status, self.limits = connection, status, limits
        hello = wire.receive(connection, time.monotonic() + START_SECONDS)
        self.missing_layers: dict[str, str] = hello["missing"]

    @classmethod
    def spawn(cls, zygote: Zygote, limits: Limits, without: tuple[str, ...] = ()) -> "StudentProcess":
        """Fork a student's process and wait until it is isolated. `without` leaves out layers, to test the others."""
        try:
            return cls._forked(zygote, limits, without)
        except (OSError, EOFError, wire.WireError):  # the zygote was killed: start another, once
            zygote.restart()
        try:
            return cls._forked(zygote, limits, without)
        except (OSError, EOFError, wire.WireError):
            raise zygote.failure() from None

    @classmethod
    def _forked(cls, zygote: Zygote, limits: Limits, without: tuple[str, ...]) -> "StudentProcess":
        connection, status = zygote.fork(limits, without)
        try:
            return cls(connection, status, limits)
        except BaseException:
            connection.close()
            status.close()
            raise

    def ask(self, request: Request, deadline: float) -> Answer:
        """Send one request and return the answer. Raises a fatal `Broken` when there is no answer."""
        try:
            wire.send(self.connection, request, deadline)
            answer: Answer = wire.receive(self.connection, deadline)
            return answer
        except TimeoutError:
            self.end()
            raise too_slow() from None
        except (EOFError, OSError):
            raise self._why_it_ended() from None
        except wire.WireError as forged:
            self.end()
            raise Broken(
                Verdict.POLICY, f"the answer cannot be read ({forged})", f"无法读取回答（{forged}）", fatal=True
            ) from None

    def memory(self, forget_peak: bool = False) -> dict[str, int]:
        """The memory of the process in kB, measured by the kernel: VmRSS now and VmHWM at the peak."""
        self.status.settimeout(END_SECONDS)
        self.status.sendall(b"R" if forget_peak else b"M")
        found: dict[str, int] = json.loads(_line(self.status))
        return found

    def end(self) -> dict[str, Any]:
        """Kill the process if it still runs, and return how it ended. Only the first call knows."""
        try:
            self.status.settimeout(END_SECONDS)
            self.status.shutdown(socket.SHUT_WR)
            ended: dict[str, Any] = json.loads(_line(self.status))
            return ended
        except (OSError, ValueError, TimeoutError):
            return {"exit": None, "cpu_seconds": 0.0}
        finally:
            self.connection.close()
            self.status.close()

    def _why_it_ended(self) -> Broken:
        """The process ended by itself. Say why."""
        select.select([self.status], [], [], END_SECONDS)
        ended = self.end()
        code = ended["exit"]
        # At its limit of processor time, the first process of a namespace gets SIGKILL, not SIGXCPU. The kernel counts
        # in ticks, which may be wrong by a fifth. So more than half of the limit means that time was the reason.
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
        Verdict.TIMEOUT, "no answer in time: does it loop forever?", "没有在时限内回答：是不是死循环？", fatal=True
    )


def _line(connection: socket.socket) -> bytes:
    received = b""
    while not received.endswith(b"\n"):
        part = connection.recv(4096)
        if not part:
            break
        received += part
    return received
