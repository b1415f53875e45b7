"""Read zip and tar archives that learning platforms export.

An archive is a stranger's file. The whole archive is refused if it contains anything that a normal export does not
contain. Files from it are written under our own names, never under the paths in the archive.
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
from typing import IO

from autograder.errors import InputError
from autograder.language import Text

from .submission import LARGEST_FILE

MOST_FILES = 20_000
MOST_BYTES = 2 * 2**30  # unpacked, all together
MOST_TIMES_SMALLER = 200  # text is compressed to a fifth of its size, almost never to a two-hundredth
ALWAYS_ALLOWED = 2**20  # smaller files may have any compression
LONGEST_NAME = 255
LINK, PIPE = Text("a link", "链接"), Text("a pipe", "管道")
SOCKET, DEVICE = Text("a socket", "套接字"), Text("a device", "设备文件")
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True)
class Member:
    """One file in an archive."""

    path: PurePosixPath
    size: int  # as the archive says; it is checked again when the file is read
    read: Callable[[], bytes]  # at most `LARGEST_FILE` + 1 bytes


def is_archive(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


def archive_stem(path: Path) -> str:
    suffix = max((s for s in SUFFIXES if path.name.lower().endswith(s)), key=len)
    return path.name[: -len(suffix)]


def members(path: Path) -> Iterator[Member]:
    """The files of an archive, each checked before it is returned."""
    with _damage_as_input_error(path):
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                yield from _checked(path, _in_zip(path, archive))
        else:
            with tarfile.open(path, mode="r:*") as archive:
                yield from _checked(path, _in_tar(path, archive))


@contextmanager
def _damage_as_input_error(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, NotImplementedError, zlib.error, lzma.LZMAError) as damaged:
        raise InputError(
            f"{path}: a damaged archive ({damaged}). Download it again",
            f"{path}：压缩包已损坏（{damaged}）。请重新下载",
        ) from None


def members_of_folder(folder: Path) -> Iterator[Member]:
    """The files below a folder, without links."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for path in (Path(place, name) for name in sorted(names)):
            if path.is_file() and not path.is_symlink():
                read = partial(_read, path, partial(_open, path))
                yield Member(PurePosixPath(path.relative_to(folder)), path.stat().st_size, read)


def _checked(path: Path, found: Iterator[Member]) -> Iterator[Member]:
    """Refuse what no export contains."""
    seen: dict[str, Member] = {}
    files, total = 0, 0
    for member in found:
        files, total = files + 1, total + member.size
        if files > MOST_FILES:
            raise unsafe(path, f"it contains more than {MOST_FILES} files", f"其中的文件超过 {MOST_FILES} 个")
        if total > MOST_BYTES:
            raise unsafe(path, f"it unpacks to more than {MOST_BYTES >> 30} GB", f"解压后超过 {MOST_BYTES >> 30} GB")
        name = unicodedata.normalize("NFC", str(member.path)).casefold()
        known = seen.setdefault(name, member)
        if known.path != member.path:
            raise unsafe(
                path,
                f"it contains {member.path}, which differs only in case from {known.path}",
                f"其中的 {member.path} 与 {known.path} 只有大小写不同",
            )
        if known is not member:
            raise unsafe(path, f"it contains {member.path} twice", f"{member.path} 在其中出现了两次")
        yield member


def _in_zip(path: Path, archive: zipfile.ZipFile) -> Iterator[Member]:
    for info in archive.infolist():
        name = _safe_name(path, info.filename)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _not_ordinary(path, name, _kind(kind))
        if info.flag_bits & 1:
            raise unsafe(path, f"{name} is encrypted", f"{name} 已加密")
        if info.is_dir():
            continue
        if info.file_size > max(ALWAYS_ALLOWED, info.compress_size * MOST_TIMES_SMALLER):
            times = info.file_size // max(1, info.compress_size)
            raise unsafe(path, f"{name} unpacks to {times} times its size", f"{name} 解压后是原来的 {times} 倍")
        yield Member(name, info.file_size, partial(_read, path, partial(archive.open, info)))


def _in_tar(path: Path, archive: tarfile.TarFile) -> Iterator[Member]:
    packed, unpacked = path.stat().st_size, 0
    for info in archive:
        name = _safe_name(path, info.name)
        if not (info.isreg() or info.isdir()):
            raise _not_ordinary(path, name, _tar_kind(info))
        unpacked += info.size
        if unpacked > max(ALWAYS_ALLOWED, packed * MOST_TIMES_SMALLER):
            most = MOST_TIMES_SMALLER
            raise unsafe(path, f"it unpacks to more than {most} times its size", f"解压后超过原来的 {most} 倍")
        if info.isreg():
            yield Member(name, info.size, partial(_read, path, partial(archive.extractfile, info)))


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _read(path: Path, opened: Callable[[], IO[bytes] | None]) -> bytes:
    with _damage_as_input_error(path):
        file = opened()
        assert file is not None  # `extractfile` returns None for folders, which are skipped
        with file:
            return file.read(LARGEST_FILE + 1)


def _safe_name(path: Path, name: str) -> PurePosixPath:
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    if plain.startswith("/") or plain[1:2] == ":":
        raise unsafe(path, f"{name!r} is an absolute path", f"{name!r} 是绝对路径")
    if ".." in parts:
        raise unsafe(path, f"{name!r} leads out of the archive", f"{name!r} 指向压缩包之外")
    if any(len(part.encode(errors="surrogateescape")) > LONGEST_NAME for part in parts):
        raise unsafe(path, f"the name {name[:40]!r}… is too long", f"{name[:40]!r}… 这个名字太长")
    if any(unicodedata.category(character) == "Cc" for character in plain):
        raise unsafe(path, f"{name!r} has control characters in its name", f"{name!r} 的名字里有控制字符")
    return PurePosixPath(plain)


def _kind(mode: int) -> Text:
    return {stat.S_IFLNK: LINK, stat.S_IFIFO: PIPE, stat.S_IFSOCK: SOCKET}.get(mode, DEVICE)


def _tar_kind(info: tarfile.TarInfo) -> Text:
    if info.issym() or info.islnk():
        return LINK
    return PIPE if info.isfifo() else DEVICE


def _not_ordinary(path: Path, name: PurePosixPath, kind: Text) -> InputError:
    return unsafe(path, f"{name} is {kind.en}, not an ordinary file", f"{name} 是{kind.zh}，不是普通文件")


def unsafe(path: Path, en: str, zh: str) -> InputError:
    return InputError(
        f"{path}: refused, because {en}. An export from a learning platform never does that",
        f"{path} 不予接受：{zh}。学习平台导出的压缩包里不会有这样的内容",
    )
