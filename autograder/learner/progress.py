"""A learner's progress, kept between sessions: parts, points, hints taken, mistakes met and overcome.

It is one JSON file in the user's data folder (`autograder check` says where), or at the path in AUTOGRADER_PROGRESS. If
that variable is empty, nothing is saved. A file that cannot be read is renamed, never overwritten. If the file cannot be
written, `check` works without it.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import platformdirs
from filelock import FileLock, Timeout

from autograder.catalogue import Exercise
from autograder.files import write_whole
from autograder.results import PartReport
from autograder.verdicts import Verdict

PLACE = "AUTOGRADER_PROGRESS"
SCHEMA = 1
PATIENCE = 2  # seconds to wait for another notebook that is writing

Entry = dict[str, Any]  # what is known about a part: see `untouched`
Exercises = dict[str, dict[str, Entry]]  # by exercise and by part


_session: Exercises = {}  # if nothing can be saved, progress is kept for this session


def place() -> Path | None:
    """The file, or None if nothing should be saved."""
    chosen = os.environ.get(PLACE)
    if chosen is None:
        return platformdirs.user_data_path("attention-by-hand", appauthor=False) / "progress.json"
    return Path(chosen) if chosen else None


def load() -> Exercises:
    """What is known, by exercise and part (see `untouched`)."""
    path = place()
    if path is None:
        return _session
    try:
        return _sound(json.loads(path.read_text(encoding="utf-8")))
    except OSError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        _put_aside(path)
        return {}


def record(exercise: Exercise, report: PartReport) -> None:
    """Remember the result of one check. When a part is right, all mistakes met in it are overcome."""
    with _changing(exercise.name, report.id) as entry:
        now = datetime.now().isoformat(timespec="seconds")
        found = {"verdict": str(report.verdict), "score": report.score}
        entry |= found | {"checks": entry["checks"] + 1, "checked": now}
        if report.mistake:
            met = entry["mistakes"].setdefault(report.mistake.name, {"met": now, "times": 0, "overcome": None})
            met |= {"times": met["times"] + 1, "overcome": None}
        if report.verdict is Verdict.PASS:
            entry["right"] = entry["right"] or now
            for met in entry["mistakes"].values():
                met["overcome"] = met["overcome"] or now


def next_hint(exercise: Exercise, part: str, steps: int) -> int:
    """The number of the next hint, counted from 0. After the last hint it is the last one again."""
    with _changing(exercise.name, part) as entry:
        step: int = min(entry["hints"], steps - 1)
        entry["hints"] = step + 1
    return step


def untouched() -> Entry:
    """What is known about a part before its first check."""
    return {"verdict": "missing", "score": 0, "checks": 0, "checked": None, "right": None, "hints": 0, "mistakes": {}}


@contextlib.contextmanager
def _changing(exercise: str, part: str) -> Iterator[Entry]:
    path = place()
    with contextlib.ExitStack() as stack:
        writable = path
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(FileLock(f"{path}.lock", timeout=PATIENCE))
        except (OSError, Timeout):
            writable = None
        known = load() if writable else _session
        yield known.setdefault(exercise, {}).setdefault(part, untouched())
        if writable:
            with contextlib.suppress(OSError):
                content = {"schema": SCHEMA, "exercises": known}
                write_whole(writable, json.dumps(content, ensure_ascii=False, indent=1))


def _sound(content: dict[str, Any]) -> Exercises:
    """The exercises of a progress file. Raises if it does not have the form that we write."""
    if content["schema"] != SCHEMA:
        raise ValueError(f"schema {content['schema']}")
    for parts in content["exercises"].values():
        for name, entry in parts.items():
            parts[name] = {key: _of_kind(entry[key], kind) for key, kind in untouched().items()}
            for met in entry["mistakes"].values():
                for key, kind in (("times", 0), ("met", None), ("overcome", None)):
                    _of_kind(met[key], kind)
    exercises: Exercises = content["exercises"]
    return exercises


def _of_kind(value: Any, example: Any) -> Any:
    kinds = (str, type(None)) if example is None else (int, float) if isinstance(example, int) else (type(example),)
    if not isinstance(value, kinds):
        raise TypeError(f"{value!r} in place of {example!r}")
    return value


def _put_aside(path: Path) -> None:
    aside = (path.with_name(f"{path.name}.damaged{number or ''}") for number in range(1000))
    with contextlib.suppress(OSError):
        os.replace(path, next(name for name in aside if not name.exists()))
