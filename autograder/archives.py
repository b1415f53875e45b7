"""Read zip and tar archives that learning platforms export.

An archive is a stranger's file. It is refused as a whole when it holds anything that an honest export never holds. What is
taken from it is written under names of our own, never under its own paths.
"""

import lzma
import os
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from .submission import LARGEST_FILE, InputError

MOST_FILES = 20_000
MOST_BYTES = 2 * 2**30  # unpacked, all together
MOST_TIMES_SMALLER = 200  # text shrinks to a fifth, hardly ever to a two-hundredth
ALWAYS_ALLOWED = 2**20  # a small file may shrink as it likes
LONGEST_NAME = 255
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True)
class Member:
    """One file in an archive."""

    path: PurePosixPath
    size: int  # as the archive says; what is read is counted again
    read: Callable[[], bytes]  # at most `LARGEST_FILE` and one byte


def is_archive(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


def archive_stem(path: Path) -> str:
    suffix = max((s for s in SUFFIXES if path.name.lower().endswith(s)), key=len)
    return path.name[: -len(suffix)]


def members(path: Path) -> Iterator[Member]:
    """The files of an archive, each checked before it is given."""
    with _damage_told(path):
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                yield from _checked(path, _in_zip(path, archive))
        else:
            with tarfile.open(path, mode="r:*") as archive:
                yield from _checked(path, _in_tar(path, archive))


@contextmanager
def _damage_told(path: Path):
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, NotImplementedError, zlib.error, lzma.LZMAError) as damaged:
        raise InputError(f"{path}: a damaged archive ({damaged}). Download it again") from None


def members_of_folder(folder: Path) -> Iterator[Member]:
    """The files below a folder, links left out."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for path in (Path(place, name) for name in sorted(names)):
            if path.is_file() and not path.is_symlink():
                yield Member(
                    PurePosixPath(path.relative_to(folder)), path.stat().st_size, partial(_read, path, open, path, "rb")
                )


def _checked(path: Path, found: Iterator[Member]) -> Iterator[Member]:
    """Refuse what no export holds."""
    seen, files, total = {}, 0, 0
    for member in found:
        files, total = files + 1, total + member.size
        if files > MOST_FILES:
            raise unsafe(path, f"it holds more than {MOST_FILES} files")
        if total > MOST_BYTES:
            raise unsafe(path, f"it unpacks to more than {MOST_BYTES >> 30} GB")
        name = unicodedata.normalize("NFC", str(member.path)).casefold()
        if name in seen:
            same = "twice" if seen[name] == member.path else f"and {seen[name]}, which differs only in case"
            raise unsafe(path, f"it holds {member.path} {same}")
        seen[name] = member.path
        yield member


def _in_zip(path: Path, archive: zipfile.ZipFile) -> Iterator[Member]:
    for info in archive.infolist():
        name = _safe_name(path, info.filename)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise unsafe(path, f"{name} is {_kind(kind)}, not an ordinary file")
        if info.flag_bits & 1:
            raise unsafe(path, f"{name} is encrypted")
        if info.is_dir():
            continue
        if info.file_size > max(ALWAYS_ALLOWED, info.compress_size * MOST_TIMES_SMALLER):
            raise unsafe(path, f"{name} unpacks to {info.file_size // max(1, info.compress_size)} times its size")
        yield Member(name, info.file_size, partial(_read, path, archive.open, info))


def _in_tar(path: Path, archive: tarfile.TarFile) -> Iterator[Member]:
    packed, unpacked = path.stat().st_size, 0
    for info in archive:
        name = _safe_name(path, info.name)
        if not (info.isreg() or info.isdir()):
            raise unsafe(path, f"{name} is {_tar_kind(info)}, not an ordinary file")
        unpacked += info.size
        if unpacked > max(ALWAYS_ALLOWED, packed * MOST_TIMES_SMALLER):
            raise unsafe(path, f"it unpacks to more than {MOST_TIMES_SMALLER} times its size")
        if info.isreg():
            yield Member(name, info.size, partial(_read, path, archive.extractfile, info))


def _read(path: Path, opened: Callable, *member) -> bytes:
    with _damage_told(path), opened(*member) as file:
        return file.read(LARGEST_FILE + 1)


def _safe_name(path: Path, name: str) -> PurePosixPath:
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    if plain.startswith("/") or plain[1:2] == ":":
        raise unsafe(path, f"{name!r} is an absolute path")
    if ".." in parts:
        raise unsafe(path, f"{name!r} leads out of the archive")
    if any(len(part.encode(errors="surrogateescape")) > LONGEST_NAME for part in parts):
        raise unsafe(path, f"{name[:40]!r}… is too long a name")
    if any(unicodedata.category(character) == "Cc" for character in plain):
        raise unsafe(path, f"{name!r} has control characters in its name")
    return PurePosixPath(plain)


def _kind(mode: int) -> str:
    return {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}.get(mode, "a device")


def _tar_kind(info: tarfile.TarInfo) -> str:
    return "a link" if info.issym() or info.islnk() else "a pipe" if info.isfifo() else "a device"


def unsafe(path: Path, reason: str) -> InputError:
    return InputError(f"{path}: refused, because {reason}. An export of a learning platform holds no such thing")
