"""Find out who submitted what, from the names that nbgrader, Moodle and Canvas give to files.

nbgrader    <student>/<exercise>/<exercise>.ipynb, and zip_collect's …_<student>_attempt_<time>_<exercise>.ipynb
Moodle      <name>_<number>_assignsubmission_file_/<exercise>.ipynb, or flat: …_assignsubmission_file_<exercise>.ipynb
Canvas      <name>_<number>_<number>_<exercise>.ipynb, with _LATE, and -1, -2 … for later attempts
otherwise   <student>/<exercise>.ipynb, or one student's archive under the student's name
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from autograder.catalogue import catalogue
from autograder.errors import InputError
from autograder.files import write_whole
from autograder.language import Text

from .archives import Member, archive_stem, is_archive, members, members_of_folder
from .submission import SUFFIXES, TIMESTAMP, Submission, discover

MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_file_(?P<file>.*)", re.DOTALL)
CANVAS = re.compile(r"(?P<name>[^_]+)(?:_LATE)?_(?P<number>\d+)_\d+_(?P<file>.+)", re.IGNORECASE | re.DOTALL)
ATTEMPT = re.compile(r"(?:.*_)?(?P<name>[^_]+)_attempt_(?P<time>[\d-]+)_(?P<file>.+)", re.DOTALL)
AGAIN = re.compile(r"(?P<stem>.+?)(?:-(?P<dash>\d{1,3})| ?\((?P<bracket>\d{1,3})\))?")
TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)")
SHOWN = 10

Place = tuple[str, PurePosixPath]  # the name of the folder or archive, and the path in it


@dataclass(frozen=True)
class FileName:
    """What the name of a file says."""

    student: str
    exercise: str
    suffix: str
    number: str  # the platform's number for a student; it distinguishes two students with the same name
    attempt: tuple[str, int]  # the largest is the newest
    timestamp: str | None


def collect(source: Path, into: Path, lang: str, tell: Callable[[str], None]) -> list[Submission]:
    """All submissions in a folder, an archive or a single file. Archives are unpacked into the folder `into`."""
    archive = source.is_file() and is_archive(source)
    if not archive and (not source.is_dir() or _is_nbgraders(source)):
        return discover(source)
    chosen, passed_over = _chosen(source)
    if not chosen and not archive:
        return discover(source)
    if not chosen:
        names = ", ".join(catalogue())
        raise InputError(
            f"{source}: no submission found; wanted <student>/<exercise>/<exercise>.ipynb, or an export of nbgrader, "
            f"Moodle or Canvas. The exercises are {names}",
            f"{source}：没有找到任何提交；应为 <学生>/<练习>/<练习>.ipynb，或 nbgrader、Moodle、Canvas 导出的文件。"
            f"练习有 {names}",
        )
    draft = into.with_name(into.name + ".part")
    shutil.rmtree(draft, ignore_errors=True)
    beside = {(place, path.parent): file for (place, path), file in chosen.items() if path.parent.name == file.exercise}
    for place, member in _members(source):
        if file := chosen.get((place, member.path)):
            folder = draft / file.student / file.exercise
            write_whole(folder / f"{file.exercise}{file.suffix}", member.read())
            if file.timestamp:
                write_whole(folder / TIMESTAMP, file.timestamp)
        elif member.path.name == TIMESTAMP and (file := beside.get((place, member.path.parent))):
            write_whole(draft / file.student / file.exercise / TIMESTAMP, member.read())
    shutil.rmtree(into, ignore_errors=True)
    os.replace(draft, into)
    if passed_over:
        tell(_notice(passed_over, lang))
    return discover(into)


def recognised(path: PurePosixPath, place: str) -> FileName | None:
    """Read the name of a file. `place` is the name of its archive or folder."""
    *folders, file = path.parts
    for folder in reversed(folders):
        if found := MOODLE.fullmatch(folder + ("" if folder.endswith("_") else "_")):
            return _file_name(found["name"], file, number=found["number"])
    if found := MOODLE.fullmatch(file):
        return _file_name(found["name"], found["file"], number=found["number"])
    if found := ATTEMPT.fullmatch(file):
        time = TIME.fullmatch(found["time"])
        stamp = "{}-{}-{} {}:{}:{} UTC".format(*time.groups()) if time else None
        return _file_name(found["name"], found["file"], timestamp=stamp, time=found["time"])
    if found := CANVAS.fullmatch(file):
        return _file_name(found["name"], found["file"], number=found["number"])
    while folders and folders[-1] in catalogue():
        folders.pop()
    return _file_name(folders[-1] if folders else place, file)


def _file_name(
    student: str, file: str, number: str = "", timestamp: str | None = None, time: str = ""
) -> FileName | None:
    stem, suffix = os.path.splitext(file)
    again = AGAIN.fullmatch(stem)
    if again is None or again["stem"].lower() not in catalogue() or suffix.lower() not in SUFFIXES:
        return None
    attempt = time, int(again["dash"] or again["bracket"] or 0)
    name = student.strip().lstrip(".") or "student"
    return FileName(name, again["stem"].lower(), suffix.lower(), number, attempt, timestamp)


def _chosen(source: Path) -> tuple[dict[Place, FileName], list[str]]:
    """The newest attempt of every student, by its place, and the files that were skipped."""
    found: dict[Place, FileName] = {}
    passed_over: list[str] = []
    for place, member in _members(source):
        file = recognised(member.path, place)
        if file is not None:
            found[place, member.path] = file
        elif member.path.name.lower().endswith(SUFFIXES):
            passed_over.append(str(member.path))
    numbers: dict[tuple[str, str], set[str]] = {}
    for file in found.values():
        numbers.setdefault((file.student, file.exercise), set()).add(file.number)
    ambiguous = {student for (student, _), several in numbers.items() if len(several) > 1}
    newest: dict[tuple[str, str], tuple[Place, FileName]] = {}
    for where, file in found.items():
        name = f"{file.student}_{file.number}" if file.student in ambiguous and file.number else file.student
        file = replace(file, student=name)
        known = newest.get((name, file.exercise))
        if known is None or known[1].attempt <= file.attempt:
            newest[name, file.exercise] = where, file
    return dict(newest.values()), passed_over


def _members(source: Path) -> Iterator[tuple[str, Member]]:
    """Every file of an archive, or of a folder and the archives in it, with the name of its archive or folder."""
    if not source.is_dir():
        yield from ((archive_stem(source), member) for member in members(source))
        return
    for member in members_of_folder(source):
        path = source / member.path
        if is_archive(path):
            yield from ((archive_stem(path), inner) for inner in members(path))
        else:
            yield source.name, member


def _is_nbgraders(folder: Path) -> bool:
    return any((student / exercise).is_dir() for student in folder.iterdir() for exercise in catalogue())


def _notice(names: list[str], lang: str) -> str:
    shown = ", ".join(names[:SHOWN]) + (" …" if len(names) > SHOWN else "")
    return Text(
        f"{len(names)} files passed over, because their names contain no exercise: {shown}",
        f"跳过 {len(names)} 个文件，因为文件名看不出是哪个练习：{shown}",
    )[lang]
