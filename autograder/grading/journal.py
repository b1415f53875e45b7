"""The journal: what has been graded already, one line per submission, so that a stopped run can continue.

A mark is shown only after its line is on the disk. An incomplete line (power cut, full disk, `kill -9`) is ignored, and
its submission is graded again. The file also contains the salt, so only its owner may read it.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import Unfinished
from autograder.results import Data, SubmissionReport
from autograder.verdicts import Verdict

MODE = 0o600
CHUNK = 2**20


@dataclass
class Entry:
    """Where the newest result of one student's exercise is in the file."""

    key: str  # the fingerprint of what the result depends on
    start: int
    length: int
    again: bool  # grade it again, because the grader itself failed
    entered: bool = False  # in the gradebook


class Journal:
    """The newest result of every submission. Results are read from the file when they are needed."""

    def __init__(self, path: Path, fresh: bool = False):
        self.path = path
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            self._lock()
            os.fchmod(self.file, MODE)
            if fresh:
                os.ftruncate(self.file, 0)
            self._entries: dict[tuple[str, str], Entry] = {}
            kept = self._read()
            self.salt = os.environ.get("AUTOGRADER_SALT") or kept or secrets.token_hex(16)
            if kept != self.salt:
                self._append({"salt": self.salt})
        except BaseException:
            os.close(self.file)
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *failure: object) -> None:
        os.close(self.file)

    def holds(self, student: str, exercise: str, key: str) -> bool:
        """Whether exactly this submission was graded by exactly this grader."""
        entry = self._entries.get((student, exercise))
        return entry is not None and entry.key == key and not entry.again

    def report(self, student: str, exercise: str) -> SubmissionReport:
        entry = self._entries[student, exercise]
        line = json.loads(os.pread(self.file, entry.length, entry.start))
        return SubmissionReport.from_data(line["report"])

    def add(self, key: str, report: SubmissionReport) -> None:
        """Write a report. Returns after it is on the disk."""
        start, length = self._append({"key": key, "report": report.data()})
        os.fdatasync(self.file)
        again = report.verdict is Verdict.GRADER_ERROR
        self._entries[report.student, report.exercise] = Entry(key, start, length, again)

    def is_entered(self, student: str, exercise: str) -> bool:
        return self._entries[student, exercise].entered

    def entered(self, student: str, exercise: str) -> None:
        """Note that the gradebook has this result. If the note is lost, the result is entered again, which is harmless."""
        entry = self._entries[student, exercise]
        entry.entered = True
        self._append({"entered": entry.key})

    def _lock(self) -> None:
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Unfinished(
                f"another grader is working in {self.path.parent}. Wait for it, or give another folder with --out",
                f"另一个评分程序正在使用 {self.path.parent}。请等它结束，或用 --out 指定别的文件夹",
            ) from None

    def _read(self) -> str | None:
        """Index every line and prepare the file for appending. Returns the salt."""
        kept: str | None = None
        by_key: dict[str, tuple[str, str]] = {}
        for start, text in self._texts():
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                entry = json.loads(text)
                if "report" in entry:
                    whose = entry["report"]["student"], entry["report"]["exercise"]
                    again = entry["report"]["verdict"] == Verdict.GRADER_ERROR
                    self._entries[whose] = Entry(entry["key"], start, len(text), again)
                    by_key[entry["key"]] = whose
                elif entry.get("entered") in by_key:
                    known = self._entries[by_key[entry["entered"]]]
                    known.entered = known.entered or known.key == entry["entered"]
                kept = entry.get("salt", kept)
        self.end = os.lseek(self.file, 0, os.SEEK_END)
        if self.end and os.pread(self.file, 1, self.end - 1) != b"\n":
            self._write(b"\n")  # end an incomplete line, so that the next line starts on its own
        return kept

    def _texts(self) -> Iterator[tuple[int, bytes]]:
        start, rest = 0, b""
        while chunk := os.pread(self.file, CHUNK, start + len(rest)):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield start, line
                start += len(line) + 1
        if rest:
            yield start, rest

    def _append(self, entry: Data) -> tuple[int, int]:
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")
        start = self.end
        self._write(line + b"\n")
        return start, len(line)

    def _write(self, data: bytes) -> None:
        start = self.end
        try:
            while data:
                written = os.pwrite(self.file, data, self.end)
                self.end, data = self.end + written, data[written:]
        except OSError as refused:
            self.end = start
            with suppress(OSError):
                os.ftruncate(self.file, start)
            raise Unfinished(
                f"{self.path} cannot be written ({refused.strerror}). The marks given so far are kept; "
                "make room and run the same command to go on",
                f"无法写入 {self.path}（{refused.strerror}）。已给出的分数都已保存；腾出空间后再次运行同一命令即可继续",
            ) from None
