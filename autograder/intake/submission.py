"""Find submissions in a folder and read their code, without trusting them.

A submission that cannot be read gets a verdict that says why. The others are graded.
"""

import json
import os
import re
import stat
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.catalogue import Exercise, catalogue, find
from autograder.errors import InputError
from autograder.verdicts import Broken, Verdict

LARGEST_FILE = 8 * 2**20
MOST_CELLS = 1000
TIMESTAMP = "timestamp.txt"  # nbgrader's
LONGEST_TIMESTAMP = 100
SUFFIXES = (".ipynb", ".py")
# Do not follow links and do not wait for pipes. Windows has other flags, and no such links and pipes.
READ_SAFELY = sum(getattr(os, flag, 0) for flag in ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
ANSWER, CHECK = "answer-", "check-"  # the name of a cell is one of these and the name of a part
ONLY_ASKS = re.compile(r"""\s*(?:check|hint)\((["'])\w+\1\)\s*""")  # an unchanged check cell; it does nothing here
CELL_MARK = re.compile(r"^# ?%%.*$", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A code cell of a submission."""

    source: str
    name: str  # what messages call it
    answers: str | None = None  # the part that this cell answers
    only_asks: bool = False  # it contains only `check(...)` or `hint(...)`


@dataclass(frozen=True)
class Submission:
    student: str
    exercise: str  # the name of the folder, even if no exercise has this name
    path: Path | None  # None: the folder contains no notebook
    timestamp: str | None = None  # when it was submitted, according to nbgrader's `timestamp.txt`
    content: bytes | None = None  # the content of the file when it was loaded
    unreadable: Broken | None = None  # why it could not be loaded


def discover(folder: Path) -> list[Submission]:
    """All submissions below `FOLDER/<student>/<exercise>/<exercise>.ipynb`, or the one file given."""
    if folder.is_file():
        return [_single(folder)]
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder or file", f"{folder}：没有这个文件夹或文件")
    found = [_in_folder(student.name, place) for student in _folders(folder) for place in _folders(student)]
    if not found:
        raise InputError(
            f"{folder}: no submission found; wanted {folder}/<student>/<exercise>/<exercise>.ipynb",
            f"{folder}：没有找到任何提交；应为 {folder}/<学生>/<练习>/<练习>.ipynb",
        )
    return found


def loaded(submission: Submission) -> Submission:
    """The submission with its content, or with the reason why it cannot be read. Later changes of the file do not matter."""
    if submission.path is None:
        return submission
    try:
        return replace(submission, content=_bytes(submission.path))
    except Broken as unreadable:
        return replace(submission, unreadable=unreadable)


def read(submission: Submission, exercise: Exercise) -> tuple[list[Cell], NotebookNode | None]:
    """The code cells, and the notebook they came from. Raises `Broken` if the file cannot be read."""
    if submission.path is None:
        raise _unreadable(Verdict.MISSING, "there is no notebook in the folder", "文件夹里没有 notebook")
    if submission.unreadable is not None:
        raise submission.unreadable
    data = _bytes(submission.path) if submission.content is None else submission.content
    try:
        text = data.decode("utf-8-sig")  # Windows editors put a byte order mark in front
    except UnicodeDecodeError:
        raise _unreadable(Verdict.ERROR, "the file is not UTF-8 text", "文件不是 UTF-8 文本") from None
    if submission.path.suffix == ".py":
        return _script_cells(text), None
    notebook = _notebook(text)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [_cell(number, cell, exercise) for number, cell in enumerate(code, 1)], notebook


def grade_id(cell: NotebookNode) -> str:
    """nbgrader's name for a cell; empty when the cell has no name."""
    found = cell.metadata.get("nbgrader")
    name = found.get("grade_id", "") if isinstance(found, dict) else ""
    return name if isinstance(name, str) else ""


def answer_cell(part: str) -> str:
    """nbgrader's name for the cell in which a part is answered."""
    return ANSWER + part


def check_cell(part: str) -> str:
    """nbgrader's name for the cell in which a part is checked. This cell has the points."""
    return CHECK + part


def part_of(cell_name: str) -> str:
    """The part that an answer or check cell belongs to; any other name is returned unchanged."""
    return cell_name.removeprefix(ANSWER).removeprefix(CHECK)


def _folders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        real = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    return sorted(place for place in real if not place.name.startswith("."))


def _in_folder(student: str, folder: Path) -> Submission:
    path = next(
        (folder / (folder.name + end) for end in SUFFIXES if os.path.lexists(folder / (folder.name + end))), None
    )
    return Submission(_readable(student), _readable(folder.name), path, _timestamp(folder))


def _readable(name: str) -> str:
    """A file name as text that every file format and database can store."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _timestamp(folder: Path) -> str | None:
    try:
        data = _bytes(folder / TIMESTAMP)
    except Broken:
        return None
    return data[:LONGEST_TIMESTAMP].decode(errors="replace").strip() or None


def _single(file: Path) -> Submission:
    try:
        exercise = find(file.stem).name
    except LookupError:
        names = ", ".join(catalogue())
        raise InputError(
            f"{file}: the file must have the name of an exercise, one of {names}",
            f"{file}：文件名要说明是哪个练习，应为以下之一：{names}",
        ) from None
    above = file.resolve().parents
    student = above[1].name if above[0].name == exercise and len(above) > 1 else "student"
    return Submission(student or "student", exercise, file)


def _bytes(path: Path) -> bytes:
    try:
        descriptor = os.open(path, READ_SAFELY)
    except OSError as refused:
        raise _unreadable(
            Verdict.ERROR, f"the file cannot be opened ({refused.strerror})", f"文件无法打开（{refused.strerror}）"
        ) from None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise _unreadable(Verdict.ERROR, "not an ordinary file", "不是普通文件")
        if about.st_size > LARGEST_FILE:
            size = about.st_size / 2**20
            raise _unreadable(
                Verdict.ERROR,
                f"the file has {size:.0f} MB; {LARGEST_FILE >> 20} are allowed. Clear the outputs and hand in again",
                f"文件有 {size:.0f} MB，上限 {LARGEST_FILE >> 20} MB。请清除输出后重新提交",
            )
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST_FILE)
    finally:
        os.close(descriptor)


def _notebook(text: str) -> NotebookNode:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            notebook: NotebookNode = nbformat.reads(json.dumps(_slender(json.loads(text))), as_version=4)
        for cell in notebook.cells:
            if cell.cell_type not in ("code", "markdown", "raw"):
                raise ValueError(f"a cell of the kind {cell.cell_type!r}")
            if not isinstance(cell.source, str) or not isinstance(cell.metadata, dict):
                raise ValueError("a cell without source or metadata")
        json.dumps(notebook, ensure_ascii=False).encode()  # raises on lone surrogates, which could not be written again
        return notebook
    except json.JSONDecodeError as broken:
        reason = f"line {broken.lineno}: {broken.msg}"
    except RecursionError:
        reason = "nested too deeply"
    except Exception as broken:
        reason = f"{type(broken).__name__}: {str(broken)[:200]}"
    raise _unreadable(
        Verdict.ERROR,
        f"the notebook is damaged ({reason}). Open it in Jupyter, save it and hand it in again",
        f"notebook 已损坏（{reason}）。请在 Jupyter 中打开、保存后重新提交",
    )


def _slender(tree: Any) -> Any:
    """The notebook without outputs, which are made again. Long notebooks are refused, because nbformat's check is slow."""
    sheets = [tree, *tree.get("worksheets", [])] if isinstance(tree, dict) else []
    cells = [cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells") or []]
    if len(cells) > MOST_CELLS:
        raise ValueError(f"{len(cells)} cells; {MOST_CELLS} are allowed")
    for cell in cells:
        if isinstance(cell, dict) and "outputs" in cell:
            cell["outputs"] = []
    return tree


def _cell(number: int, cell: NotebookNode, exercise: Exercise) -> Cell:
    answered = next((part.name for part in exercise.parts if grade_id(cell) == answer_cell(part.name)), None)
    return Cell(cell.source, f"cell {number}", answered, bool(ONLY_ASKS.fullmatch(cell.source)))


def _script_cells(text: str) -> list[Cell]:
    """A script is one cell, or several if it has `# %%` lines."""
    return [Cell(source, f"cell {i}") for i, source in enumerate(CELL_MARK.split(text), 1) if source.strip()]


def _unreadable(verdict: Verdict, en: str, zh: str) -> Broken:
    return Broken(verdict, en, zh, fatal=True)
