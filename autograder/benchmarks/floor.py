"""The least that any grader must do: fork, load the cells and call the functions. No sandbox, no verdict."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import torch

from .masks_class import ASSERTS, without_checks


def main(folder: Path, out: Path) -> None:
    notebooks = [nbformat.read(path, as_version=4) for path in sorted(folder.glob("*/*/*.ipynb"))]
    codes = [[c.source for c in without_checks(n).cells if c.cell_type == "code"] for n in notebooks]
    torch.set_num_threads(1)
    started = time.monotonic()
    running = 0
    for cells in codes:
        if running == os.cpu_count():
            os.wait()
            running -= 1
        if os.fork() == 0:
            _run(cells)
        running += 1
    while running:
        os.wait()
        running -= 1
    out.write_text(json.dumps({"seconds_each": (time.monotonic() - started) / len(codes)}))


def _run(cells: list[str]) -> None:
    namespace: dict[str, Any] = {}
    try:
        for source in cells:
            exec(source, namespace)
        for asserts in ASSERTS.values():
            exec("\n".join(asserts), dict(namespace))
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
