"""Exports of learning platforms are collected under the right names; unsafe archives are refused."""

import io
import re
import stat
import sys
import tarfile
import zipfile
from pathlib import Path

import nbformat
import pytest

from autograder.catalogue import find
from autograder.checks.samples import solution, untouched
from autograder.cli import main
from autograder.errors import InputError
from autograder.intake import archives
from autograder.intake.collect import collect

NOTEBOOK = b'{"cells": []}'


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def unpacked(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def collected(source: Path, tell=lambda text: None) -> dict[tuple[str, str], bytes]:
    found = collect(source, source.parent / "out" / "collected", "en", tell)
    return {(s.student, s.exercise): s.path.read_bytes() for s in found}


NBGRADER = {
    "ada/06_masks/06_masks.ipynb": b"1",
    "alan/06_masks/06_masks.py": b"2",
    "alan/05_softmax/05_softmax.ipynb": b"3",
}
ZIP_COLLECT = {
    "ps1_ada_attempt_2026-01-30-15-30-10_06_masks.ipynb": b"old",
    "ps1_ada_attempt_2026-02-01-09-00-00_06_masks.ipynb": b"1",
    "ps1_alan_attempt_2026-01-30-20-30-10_06_masks.ipynb": b"2",
}
MOODLE = {
    "Ada Lovelace_12345_assignsubmission_file_/06_masks.ipynb": b"1",
    "图灵_12346_assignsubmission_file_/06_masks.ipynb": b"2",
    "图灵_12346_assignsubmission_onlinetext_/onlinetext.html": b"<p>see the file</p>",
    "Grace Hopper_12347_assignsubmission_file/06_masks (1).ipynb": b"3",
}
MOODLE_FLAT = {name.replace("file_/", "file_"): content for name, content in list(MOODLE.items())[:2]}
CANVAS = {
    "lovelaceada_123_456_06_masks.ipynb": b"old",
    "lovelaceada_123_789_06_masks-1.ipynb": b"older than 2",
    "lovelaceada_123_801_06_masks-2.ipynb": b"1",
    "turingalan_LATE_124_457_06_masks.ipynb": b"2",
}


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        (NBGRADER, {("ada", "06_masks"): b"1", ("alan", "06_masks"): b"2", ("alan", "05_softmax"): b"3"}),
        ({f"submitted/{k}": v for k, v in NBGRADER.items()}, {("ada", "06_masks"): b"1", ("alan", "06_masks"): b"2", ("alan", "05_softmax"): b"3"}),
        (ZIP_COLLECT, {("ada", "06_masks"): b"1", ("alan", "06_masks"): b"2"}),
        (MOODLE, {("Ada Lovelace", "06_masks"): b"1", ("图灵", "06_masks"): b"2", ("Grace Hopper", "06_masks"): b"3"}),
        (MOODLE_FLAT, {("Ada Lovelace", "06_masks"): b"1", ("图灵", "06_masks"): b"2"}),
        (CANVAS, {("lovelaceada", "06_masks"): b"1", ("turingalan", "06_masks"): b"2"}),
    ],
    ids=["nbgrader", "nbgrader below a folder", "zip_collect", "Moodle", "Moodle without folders", "Canvas"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["zip", "tar.gz", "folder"])
def test_every_layout_is_collected_from_archives_and_folders(tmp_path, files, wanted, kind):
    if kind == "zip":
        source = zipped(tmp_path / "export.zip", files)
    elif kind == "tar.gz":
        source = tarred(tmp_path / "export.tar.gz", *((tarfile.TarInfo(n), content) for n, content in files.items()))
    else:
        source = unpacked(tmp_path / "export", files)
    assert collected(source) == wanted


def test_the_archive_folder_of_zip_collect_is_collected(tmp_path):
    archive = tmp_path / "downloaded" / "06_masks" / "archive"
    archive.mkdir(parents=True)
    zipped(archive / "notebooks.zip", ZIP_COLLECT)
    zipped(archive / "grace.zip", {"06_masks.ipynb": b"3"})
    assert collected(tmp_path / "downloaded") == {
        ("ada", "06_masks"): b"1",
        ("alan", "06_masks"): b"2",
        ("grace", "06_masks"): b"3",
    }


def test_two_students_with_the_same_name_stay_separate(tmp_path):
    files = {f"Ada_{n}_assignsubmission_file_/06_masks.ipynb": str(n).encode() for n in (1, 2)}
    found = collected(zipped(tmp_path / "export.zip", files))
    assert found == {("Ada_1", "06_masks"): b"1", ("Ada_2", "06_masks"): b"2"}


def test_the_submission_time_is_kept(tmp_path):
    stamped = {**NBGRADER, "ada/06_masks/timestamp.txt": b"2026-02-03 04:05:06 UTC"}
    for name, files in {"nbgrader.zip": stamped, "zip_collect.zip": ZIP_COLLECT}.items():
        found = collect(zipped(tmp_path / name, files), tmp_path / "out", "en", lambda text: None)
        times = {s.student: s.timestamp for s in found if s.exercise == "06_masks"}
        assert times["ada"] in ("2026-02-03 04:05:06 UTC", "2026-02-01 09:00:00 UTC")


@pytest.mark.parametrize(("lang", "said"), [("en", "1 files passed over"), ("zh", "跳过 1 个文件")])
def test_a_notebook_without_an_exercise_in_its_name_is_reported(tmp_path, lang, said):
    told = []
    source = zipped(tmp_path / "export.zip", {**CANVAS, "hopper_125_458_homework.ipynb": b""})
    assert len(collect(source, tmp_path / "out", lang, told.append)) == 2
    assert said in told[0]
    assert "hopper_125_458_homework.ipynb" in told[0]


def test_an_archive_without_submissions_is_explained(tmp_path):
    with pytest.raises(InputError, match=r"Moodle or Canvas.*06_masks"):
        collected(zipped(tmp_path / "export.zip", {"readme.txt": b""}))


def link(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (mode | 0o777) << 16
    return info


def with_info(path: Path, info: zipfile.ZipInfo, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, content)
    return path


def encrypted(path: Path) -> Path:
    zipped(path, {"ada/06_masks/06_masks.ipynb": NOTEBOOK})
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + place] |= 1
    path.write_bytes(data)
    return path


def special(kind: bytes, **about) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo("ada/06_masks/06_masks.ipynb")
    info.type = kind
    for name, value in about.items():
        setattr(info, name, value)
    return info, b""


UNSAFE = {
    "absolute": (lambda f: zipped(f / "a.zip", {"/etc/06_masks.ipynb": NOTEBOOK}), "absolute path"),
    "a Windows drive": (lambda f: zipped(f / "a.zip", {"C:\\x\\06_masks.ipynb": NOTEBOOK}), "absolute path"),
    "above": (lambda f: zipped(f / "a.zip", {"ada/../../06_masks.ipynb": NOTEBOOK}), "leads out"),
    "above, the Windows way": (lambda f: zipped(f / "a.zip", {"ada\\..\\..\\06_masks.ipynb": NOTEBOOK}), "leads out"),
    "a link": (lambda f: with_info(f / "a.zip", link("ada/06_masks.ipynb", stat.S_IFLNK), b"/etc/passwd"), "a link"),
    "a device": (lambda f: with_info(f / "a.zip", link("ada/06_masks.ipynb", stat.S_IFCHR), b""), "a device"),
    "encrypted": (lambda f: encrypted(f / "a.zip"), "encrypted"),
    "a bomb": (lambda f: zipped(f / "a.zip", {"ada/06_masks/06_masks.ipynb": bytes(2**24)}), "times its size"),
    "case": (lambda f: zipped(f / "a.zip", {"a/06_masks.ipynb": b"", "A/06_MASKS.ipynb": b""}), "differs only in case"),
    "control characters": (lambda f: zipped(f / "a.zip", {"a\nb/06_masks.ipynb": b""}), "control characters"),
    "a long name": (lambda f: zipped(f / "a.zip", {"a" * 256 + "/06_masks.ipynb": b""}), "too long"),
    "tar: absolute": (lambda f: tarred(f / "a.tgz", (tarfile.TarInfo("/06_masks.ipynb"), b"")), "absolute path"),
    "tar: above": (lambda f: tarred(f / "a.tgz", (tarfile.TarInfo("../06_masks.ipynb"), b"")), "leads out"),
    "tar: a link": (lambda f: tarred(f / "a.tar", special(tarfile.SYMTYPE, linkname="/etc/passwd")), "a link"),
    "tar: a hard link": (lambda f: tarred(f / "a.tar", special(tarfile.LNKTYPE, linkname="x")), "a link"),
    "tar: a device": (lambda f: tarred(f / "a.tar", special(tarfile.BLKTYPE)), "a device"),
    "tar: a pipe": (lambda f: tarred(f / "a.tar", special(tarfile.FIFOTYPE)), "a pipe"),
    "tar: a bomb": (lambda f: tarred(f / "a.tgz", (tarfile.TarInfo("ada/06_masks.ipynb"), bytes(2**24))), "times its size"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSAFE)
def test_an_unsafe_archive_is_refused_with_a_reason_and_nothing_is_unpacked(tmp_path, name):
    make, reason = UNSAFE[name]
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match=f"refused, because .*{reason}") as refused:
        collect(make(tmp_path / "in"), tmp_path / "out" / "collected", "en", lambda text: None)
    assert re.search(r"不予接受：.*[一-鿿].*。", refused.value.message.zh)
    assert not (tmp_path / "out").exists()


def test_too_many_files_or_bytes_are_refused(tmp_path, monkeypatch):
    source = zipped(tmp_path / "a.zip", {f"s{i}/06_masks.ipynb": bytes(1000) for i in range(4)})
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    with pytest.raises(InputError, match="more than 3 files"):
        collected(source)
    monkeypatch.setattr(archives, "MOST_FILES", 4)
    assert len(collected(source)) == 4
    monkeypatch.setattr(archives, "MOST_BYTES", 3999)
    with pytest.raises(InputError, match="unpacks to more than"):
        collected(source)


def test_a_false_size_in_the_directory_is_detected(tmp_path):
    """The directory claims 10 bytes, the data have 16 MB: only as much as a submission may have is read."""
    path = zipped(tmp_path / "a.zip", {"ada/06_masks/06_masks.ipynb": bytes(2**24)})
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        start = data.index(mark) + place
        data[start : start + 4] = (10).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        collected(path)


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar"])
@pytest.mark.parametrize("content", [b"", b"PK\3\4 and then nothing", bytes(3000)])
def test_a_damaged_archive_is_reported(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=r"damaged|no submission"):
        collected(tmp_path / name)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading needs Linux")
def test_an_export_is_graded_from_the_command_line(tmp_path, monkeypatch, capsys):
    exercise = find("06_masks")
    monkeypatch.chdir(tmp_path)
    right, empty = (nbformat.writes(work(exercise)).encode() for work in (solution, untouched))
    zipped(tmp_path / "export.zip", {"adal_1_2_06_masks.ipynb": right, "turing_LATE_3_4_06_masks.ipynb": empty})
    for _ in range(2):
        assert main(["grade", "export.zip", "--out", "out", "--lang", "en"]) == 0
    rows = (tmp_path / "out" / "grades.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert rows == ["adal,06_masks,20.0,20,pass", "turing,06_masks,0.0,20,missing"]
    journal = (tmp_path / "out" / "journal.jsonl").read_text(encoding="utf-8")
    assert journal.count('"report"') == 2  # the second run graded nothing
    zipped(tmp_path / "unsafe.zip", {"../06_masks.ipynb": right})
    assert main(["grade", "unsafe.zip", "--out", "out", "--lang", "en"]) == 2
    assert "leads out of the archive" in capsys.readouterr().err
