"""Check a notebook again whenever it is saved, beginning where one left off."""

import time
from datetime import datetime
from pathlib import Path

from rich.console import Console

from .catalogue import Exercise
from .selfcheck import check_notebooks, first_open, notebook_of, progress_table

PAUSE = 0.5  # seconds between two looks
WORDS = {
    "watching": {"en": "watching {} notebooks; save one to check it, Ctrl-C ends", "zh": "正在监视 {} 个 notebook：保存即检查，按 Ctrl-C 结束"},
    "checked": {"en": "checked at {}; waiting for the next save", "zh": "{} 检查完毕；等待下一次保存"},
    "ended": {"en": "ended; the same command goes on from here", "zh": "已结束；再次运行同一命令，从这里继续"},
    "all done": {"en": "every exercise is done", "zh": "全部练习都完成了"},
}  # fmt: skip


def watch(exercises: list[Exercise], lang: str, console: Console, root: Path | None = None) -> None:
    """Until Ctrl-C. Begins with the exercise that is under way; the table comes first and last, not between."""
    paths = {exercise: notebook_of(exercise, root) for exercise in exercises}
    try:
        seen = {exercise: _saved(path) for exercise, path in paths.items()}
        progress_table(lang, console)
        at_hand = first_open(exercises)
        if at_hand is not None:
            check_notebooks([at_hand], lang, console, root)
        console.print(WORDS["all done"][lang] if at_hand is None else WORDS["watching"][lang].format(len(paths)))
        while True:
            time.sleep(PAUSE)
            for exercise, path in paths.items():
                now = _saved(path)
                if now != seen[exercise]:
                    seen[exercise] = now
                    if now is not None:
                        check_notebooks([exercise], lang, console, root)
                        console.print(WORDS["checked"][lang].format(f"{datetime.now():%H:%M:%S}"))
    except KeyboardInterrupt:
        console.print()
        progress_table(lang, console)
        console.print(WORDS["ended"][lang])


def _saved(path: Path) -> tuple[int, int] | None:
    """Changes whenever the file is saved; None while there is none, as in the middle of a save."""
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_mtime_ns, about.st_size) if about.st_size else None
