"""Landlock: a process limits itself to the folders it names. This needs no privilege and applies to its children too."""

import ctypes
import os
import struct

from . import kernel

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
READ = EXECUTE | READ_FILE | READ_DIR
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15
RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
PATH_BENEATH = 1
CREATE_RULESET_VERSION = 1


def version() -> int:
    """The kernel's Landlock version; OSError when the kernel has no Landlock."""
    return kernel.syscall("landlock_create_ruleset", None, ctypes.c_size_t(0), CREATE_RULESET_VERSION)


def restrict(readable: list[str], writable: list[str]) -> None:
    """Allow reading below `readable`, everything below `writable`, and nothing else. `no_new_privs` must be set."""
    abi = version()
    rights = RIGHTS_BY_VERSION[min(abi, 5)]
    network = 3 if abi >= 4 else 0  # TCP bind and connect, which no rule allows
    scoped = 3 if abi >= 6 else 0  # abstract sockets of others, signals to others
    attributes = struct.pack("QQQ", rights, network, scoped)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = kernel.syscall(
        "landlock_create_ruleset", ctypes.create_string_buffer(attributes), ctypes.c_size_t(len(attributes)), 0
    )
    try:
        for paths, allowed in ((readable, READ), (writable, rights & ~EXECUTE)):
            for path in paths:
                _allow(ruleset, path, allowed)
        kernel.syscall("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            rights &= FILE_RIGHTS
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place))
        kernel.syscall("landlock_add_rule", ruleset, PATH_BENEATH, rule, 0)
    finally:
        os.close(place)
