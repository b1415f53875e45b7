"""A real PostgreSQL server for the tests, in its own folder, with a socket there."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PORT = 5432  # only part of the name of the socket: the server listens on no network


def programs() -> Path:
    """Where initdb and pg_ctl are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        if os.geteuid() == 0 and shutil.which("apt-get"):
            pytest.fail("PostgreSQL is missing; `make postgres` installs it")
        pytest.skip("needs PostgreSQL; on Debian: sudo apt-get install postgresql")
    return found[-1].parent if found else Path(on_path).resolve().parent


@contextmanager
def server() -> Iterator[str]:
    """A running server; gives the URL of an empty database."""
    bin = programs()
    folder = Path(tempfile.mkdtemp(prefix="autograder-postgres-"))
    owner = _ordinary_user(folder)
    data = folder / "data"
    settings = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c port={PORT} -c fsync=off"
    _run(owner, bin / "initdb", "--pgdata", data, "--username", "grader", "--auth", "trust", "--encoding", "UTF8")
    _run(owner, bin / "pg_ctl", "--pgdata", data, "--log", folder / "log", "--wait", "--options", settings, "start")
    try:
        yield f"postgresql://grader@/postgres?host={folder}&port={PORT}"
    finally:
        _run(owner, bin / "pg_ctl", "--pgdata", data, "--mode", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _ordinary_user(folder: Path) -> dict:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _run(owner: dict, *command) -> None:
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
    done = subprocess.run([str(part) for part in command], env=environment, cwd="/", check=False, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **owner)  # fmt: skip
    assert done.returncode == 0, done.stdout
