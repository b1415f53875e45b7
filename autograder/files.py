"""Write files atomically: a reader, or a run that continues later, never sees half a file."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, data: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    draft.write_bytes(data.encode(errors="replace") if isinstance(data, str) else data)
    os.replace(draft, path)


@contextmanager
def whole_files(folder: Path) -> Iterator[Path]:
    """Give a temporary folder to write into. At the end of the block its files are moved into `folder`."""
    draft = folder / ".part"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    yield draft
    for path in [path for path in draft.rglob("*") if path.is_file()]:
        place = folder / path.relative_to(draft)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, place)
    shutil.rmtree(draft)
