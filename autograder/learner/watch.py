"""Check a notebook again whenever it is saved, starting with the exercise where the learner stopped."""

import time
from datetime import datetime
from pathlib import Path

from rich.console import Console

from autograder.catalogue import Exercise
from autograder.language import Text

from .check_files import check_notebooks, first_open, notebook_of, progress_table

PAUSE = 0.5  # seconds between two looks
WATCHING = Text(
    "watching {} notebooks; save one to check it, Ctrl-C ends", "正在监视 {} 个 notebook：保存即检查，按 Ctrl-C 结束"
)
CHECKED = Text("checked at {}; waiting for the next save", "{} 检查完毕；等待下一次保存")
ENDED = Text("ended; the same command goes on from here", "已结束；再次运行同一命令，从这里继续")
ALL_DONE = Text("every exercise is done", "全部练习都完成了")


def watch(exercises: list[Exercise], lang: str, console: Console, root: Path | None = None) -> None:
    """Watch until Ctrl-C, starting with the exercise in progress. The table is shown only at the start and at the end."""
    paths = {exercise: notebook_of(exercise, root) for exercise in exercises}
    try:
        seen = {exercise: _saved(path) for exercise, path in paths.items()}
        progress_table(lang, console)
        at_hand = first_open(exercises)
        if at_hand is not None:
            check_notebooks([at_hand], lang, console, root)
        console.print(ALL_DONE[lang] if at_hand is None else WATCHING[lang].format(len(paths)))
        while True:
            time.sleep(PAUSE)
            for exercise, path in paths.items():
                now = _saved(path)
                if now != seen[exercise]:
                    seen[exercise] = now
                    if now is not None:
                        check_notebooks([exercise], lang, console, root)
                        console.print(CHECKED[lang].format(f"{datetime.now():%H:%M:%S}"))
    except KeyboardInterrupt:
        console.print()
        progress_table(lang, console)
        console.print(ENDED[lang])


def _saved(path: Path) -> tuple[int, int] | None:
    """A value that changes whenever the file is saved; None if there is no file, for example during a save."""
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_mtime_ns, about.st_size) if about.st_size else None
