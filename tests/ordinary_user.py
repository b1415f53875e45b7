"""Run a command as somebody who is not root.

Root's own Python often lies where nobody else may look. Then the command gets a mount namespace in which the closed
folders on the way are replaced by open ones that hold nothing but Python and this project.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SOMEBODY = 65534
IMPOSSIBLE = 125
ROOT = Path(__file__).parents[1]
NEEDED = (sys.prefix, sys.base_prefix, str(ROOT))


def run(*command: str, **options) -> subprocess.CompletedProcess:
    """Run `command` as an ordinary user with an empty home folder, and wait for it; skip the test where that cannot be."""
    if os.geteuid() != 0:
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)
    options.setdefault("cwd", "/")
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, SOMEBODY, SOMEBODY)
        step_down = [sys.executable, __file__, home, *command]
        done = subprocess.run(step_down, capture_output=True, text=True, check=False, **options)
    if done.returncode == IMPOSSIBLE:
        pytest.skip(f"cannot become an ordinary user here: {done.stderr.strip()}")
    return done


def open_the_way(needed: tuple[str, ...]) -> None:
    """Make these folders reachable for everybody, in the sight of this process only."""
    from autograder.student.sandbox import kernel

    closed = [folder for place in needed for folder in reversed(Path(place).parents) if not folder.stat().st_mode & 1]
    if not closed:
        return
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    held = {place: os.open(place, os.O_PATH) for place in needed}
    for folder in closed:
        if folder.exists():  # not below one that was replaced already
            kernel.mount("tmpfs", str(folder), "tmpfs", 0, "mode=755")
    for place, folder in held.items():
        if not os.path.exists(place):
            os.makedirs(place)
            kernel.mount(f"/proc/self/fd/{folder}", place, None, kernel.MS_BIND | kernel.MS_REC)
        os.close(folder)


def step_down(home: str, command: list[str]) -> None:
    try:
        open_the_way(NEEDED)
        os.setgroups([])
        os.setresgid(SOMEBODY, SOMEBODY, SOMEBODY)
        os.setresuid(SOMEBODY, SOMEBODY, SOMEBODY)
    except OSError as refused:
        sys.stderr.write(str(refused))
        sys.exit(IMPOSSIBLE)
    os.execve(command[0], command, os.environ | {"HOME": home, "USER": "somebody", "LOGNAME": "somebody"})


if __name__ == "__main__":
    step_down(sys.argv[1], sys.argv[2:])
