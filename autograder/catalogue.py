"""The table of all exercises and parts. It is read from `catalogue.toml` and checked while it is read."""

import ast
import re
import tomllib
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from .errors import UserError
from .language import Text

FILE = Path(__file__).with_name("catalogue.toml")
POINTS_PER_EXERCISE = 20

Entry = dict[str, Any]  # a table of the file


class CatalogueError(UserError):
    """The catalogue itself is wrong; the message names the entry."""


@dataclass(frozen=True)
class Limits:
    wall_seconds: float  # the whole submission, over all its processes
    call_seconds: float  # one cell or one call
    cpu_seconds: int
    memory_mb: int  # beyond what an idle student process needs
    processes: int  # how many threads; new processes are refused
    file_mb: int
    output_kb: int  # what one cell may print


@dataclass(frozen=True)
class Part:
    name: str
    signature: str
    kind: str  # "function" or "class"
    returns: tuple[str, ...]
    points: float  # whole or half
    minutes: int
    difficulty: int  # 1 to 5
    section: str  # the label of the section of the chapter that teaches it
    forbidden: frozenset[str]  # operators and functions that would solve the exercise for the learner


@dataclass(frozen=True, eq=False)
class Exercise:
    name: str
    title: Text
    limits: Limits
    parts: tuple[Part, ...]

    @property
    def chapter(self) -> int:
        return int(self.name[:2])

    @property
    def points(self) -> float:
        total = sum(part.points for part in self.parts)
        return int(total) if total == int(total) else total

    @property
    def module(self) -> str:
        """The name of its reference and mistakes modules."""
        return f"ch{self.name}"

    def part(self, name: str) -> Part:
        return next(part for part in self.parts if part.name == name)


@cache
def catalogue() -> dict[str, Exercise]:
    """All exercises by name, in order."""
    return load(FILE)


def find(name: str) -> Exercise:
    """One exercise. Accepts `06_masks`, `06`, `6` or `masks`."""
    for exercise in catalogue().values():
        number, _, rest = exercise.name.partition("_")
        if name in (exercise.name, rest, number, str(int(number))):
            return exercise
    raise LookupError(name)


def load(path: Path) -> dict[str, Exercise]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as broken:
        raise CatalogueError(f"{path}: {broken}", f"{path}：{broken}") from broken
    defaults = _limits(table.get("limits", {}), "limits")
    groups = table.get("forbidden", {})
    exercises: dict[str, Exercise] = {}
    for entry in table.get("exercise", []):
        exercise = _exercise(entry, defaults, groups)
        if exercise.name in exercises:
            raise _wrong(f"{exercise.name} is listed twice", f"{exercise.name} 列了两次")
        exercises[exercise.name] = exercise
    if list(exercises) != sorted(exercises):
        raise _wrong("exercises are not in the order of their numbers", "练习没有按编号排列")
    return exercises


def _limits(entry: Entry, where: str) -> Limits:
    names = {field.name for field in fields(Limits)}
    if set(entry) != names:
        raise _wrong(
            f"{where}: wanted exactly {sorted(names)}, got {sorted(entry)}",
            f"{where}：应恰好是 {sorted(names)}，实际是 {sorted(entry)}",
        )
    return Limits(**_positive(entry, where))


def _positive(entry: Entry, where: str) -> Entry:
    for key, value in entry.items():
        if not isinstance(value, int | float) or value <= 0:
            raise _wrong(
                f"{where}: {key} must be a positive number, not {value!r}", f"{where}：{key} 应为正数，而不是 {value!r}"
            )
    return entry


def _exercise(entry: Entry, defaults: Limits, groups: Entry) -> Exercise:
    name = entry.get("name", "?")
    if not re.fullmatch(r"\d\d_[a-z0-9_]+", name):
        raise _wrong(
            f"exercise {name!r}: a name is two digits and words, such as 06_masks",
            f"练习 {name!r}：名字由两位数字和单词组成，例如 06_masks",
        )
    _keys(entry, {"name", "title", "part"}, {"limits"}, name)
    parts = tuple(_part(part, name, groups) for part in entry["part"])
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise _wrong(f"{name}: a part is listed twice", f"{name}：有一个部分列了两次")
    exercise = Exercise(
        name=name,
        title=_both_languages(entry["title"], name),
        limits=replace(defaults, **_positive(entry.get("limits", {}), name)),
        parts=parts,
    )
    if exercise.points != POINTS_PER_EXERCISE:
        raise _wrong(
            f"{name}: parts add up to {exercise.points} points, not {POINTS_PER_EXERCISE}",
            f"{name}：各部分合计 {exercise.points} 分，应为 {POINTS_PER_EXERCISE} 分",
        )
    return exercise


def _part(entry: Entry, exercise: str, groups: Entry) -> Part:
    where = f"{exercise}.{entry.get('name', '?')}"
    needed = {"name", "signature", "returns", "points", "minutes", "difficulty", "section"}
    _keys(entry, needed, {"kind", "forbidden"}, where)
    if not entry["name"].isidentifier():
        raise _wrong(f"{where}: not a Python name", f"{where}：不是合法的 Python 名字")
    try:
        ast.parse(f"def f{entry['signature']}: ...")
    except SyntaxError:
        raise _wrong(
            f"{where}: {entry['signature']!r} is not a signature", f"{where}：{entry['signature']!r} 不是函数签名"
        ) from None
    if entry.get("kind", "function") not in ("function", "class"):
        raise _wrong(f"{where}: kind is function or class", f"{where}：kind 只能是 function 或 class")
    _positive({key: entry[key] for key in ("points", "minutes", "difficulty")}, where)
    if entry["points"] % 0.5:
        raise _wrong(
            f"{where}: points are whole or half, not {entry['points']}",
            f"{where}：points 只能是整数或半数，而不是 {entry['points']}",
        )
    if entry["difficulty"] > 5:
        raise _wrong(f"{where}: difficulty is 1 to 5", f"{where}：difficulty 应在 1 到 5 之间")
    if unknown := ", ".join(sorted(set(entry.get("forbidden", ())) - set(groups))):
        raise _wrong(f"{where}: no forbidden group is called {unknown}", f"{where}：没有叫 {unknown} 的 forbidden 组")
    return Part(
        name=entry["name"],
        signature=entry["signature"],
        kind=entry.get("kind", "function"),
        returns=tuple(entry["returns"]),
        points=entry["points"],
        minutes=entry["minutes"],
        difficulty=entry["difficulty"],
        section=entry["section"],
        forbidden=frozenset(name for group in entry.get("forbidden", ()) for name in groups[group]),
    )


def _keys(entry: Entry, required: set[str], optional: set[str], where: str) -> None:
    if missing := ", ".join(sorted(required - set(entry))):
        raise _wrong(f"{where}: {missing} missing", f"{where}：缺少 {missing}")
    if unknown := ", ".join(sorted(set(entry) - required - optional)):
        raise _wrong(f"{where}: unknown {unknown}", f"{where}：不认识 {unknown}")


def _both_languages(text: Entry, where: str) -> Text:
    if set(text) != {"en", "zh"}:
        raise _wrong(f"{where}: title needs en and zh", f"{where}：title 要有 en 和 zh 两种语言")
    return Text(**text)


def _wrong(en: str, zh: str) -> CatalogueError:
    return CatalogueError(f"{FILE.name}: {en}", f"{FILE.name}：{zh}")
