"""Run a command as a user who is not root.

Other users often cannot read root's own Python. Then the command gets a mount namespace, in which the closed folders on the
way are replaced by open ones that hold only Python and this project.
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
    """Run `command` as an ordinary user with an empty home folder, and wait for it. Skip the test where that is impossible."""
    if os.geteuid() != 0:
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)
    options.setdefault("cwd", "/")
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, SOMEBODY, SOMEBODY)
        become_ordinary_user = [sys.executable, __file__, home, *command]
        done = subprocess.run(become_ordinary_user, capture_output=True, text=True, check=False, **options)
    if done.returncode == IMPOSSIBLE:
        pytest.skip(f"cannot become an ordinary user here: {done.stderr.strip()}")
    return done


def make_reachable(needed: tuple[str, ...]) -> None:
    """Make these folders readable for every user, in the mount namespace of this process only."""
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


def become_ordinary_user(home: str, command: list[str]) -> None:
    try:
        make_reachable(NEEDED)
        os.setgroups([])
        os.setresgid(SOMEBODY, SOMEBODY, SOMEBODY)
        os.setresuid(SOMEBODY, SOMEBODY, SOMEBODY)
    except OSError as refused:
        sys.stderr.write(str(refused))
        sys.exit(IMPOSSIBLE)
    os.execve(command[0], command, os.environ | {"HOME": home, "USER": "somebody", "LOGNAME": "somebody"})


if __name__ == "__main__":
    become_ordinary_user(sys.argv[1], sys.argv[2:])
