"""Linux system calls that the sandbox needs and Python does not offer.

Each function raises OSError when the kernel refuses. The numbers come from the kernel's headers.
"""

import ctypes
import os
import platform
import struct
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
CLONE_THREAD = 0x00010000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
MADV_COLLAPSE, LARGE_PAGE = 25, 2**21

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
SECCOMP_MODE_FILTER = 2

# Syscall numbers by machine: (x86_64, aarch64). None: that machine has no such call.
SYSCALLS = {
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242), "sendto": (44, 206), "fork": (57, None), "vfork": (58, None), "clone": (56, 220),
    "clone3": (435, 435), "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "mount_setattr": (442, 442), "setuid": (105, 146),
    "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143), "setresuid": (117, 147),
    "setresgid": (119, 149), "setgroups": (116, 159), "setfsuid": (122, 151), "setfsgid": (123, 152),
    "capset": (126, 91), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "syslog": (103, 116), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "sethostname": (170, 161), "setdomainname": (171, 162),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "acct": (163, 89), "quotactl": (179, 60),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "mknod": (133, None), "mknodat": (259, 33),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191),
    "semtimedop": (220, 192), "mq_open": (240, 180), "personality": (135, 92), "memfd_create": (319, 279),
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "migrate_pages": (256, 238), "move_pages": (279, 239), "process_mrelease": (448, 448),
    "memfd_secret": (447, 447), "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setscheduler": (144, 119),
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446),
}  # fmt: skip
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def number(name: str) -> int:
    """The number of a system call. KeyError when this machine has no such call."""
    column, _ = ARCHITECTURES[platform.machine()]
    found = SYSCALLS[name][column]
    if found is None:
        raise KeyError(name)
    return found


def numbers(names: list[str]) -> list[int]:
    """The numbers of those system calls that this machine has."""
    column, _ = ARCHITECTURES[platform.machine()]
    found = [SYSCALLS[name][column] for name in names]
    return [call for call in found if call is not None]


def syscall(name: str, *args: Any) -> int:
    result = libc.syscall(ctypes.c_long(number(name)), *args)
    return _checked(result, name)


def unshare(flags: int) -> None:
    _checked(libc.unshare(flags), "unshare")


def prctl(option: int, *args: int) -> None:
    _checked(libc.prctl(option, *(ctypes.c_ulong(arg) for arg in (*args, 0, 0, 0, 0)[:4])), "prctl")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    _checked(libc.mount(*encoded, ctypes.c_ulong(flags), None if data is None else data.encode()), f"mount {target}")


def unmount(target: str) -> None:
    _checked(libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def pivot_root(new_root: str, put_old: str) -> None:
    syscall("pivot_root", os.fsencode(new_root), os.fsencode(put_old))


def gather_pages(maps: str) -> None:
    """Move this process's memory, listed in `maps`, into large pages, so that a fork copies a much shorter page table.

    Where the kernel has no large pages, nothing changes.
    """
    for line in maps.splitlines():
        place, mode, _, _, file, *_ = line.split()
        start, end = (int(address, 16) for address in place.split("-"))
        start, end = -(-start // LARGE_PAGE) * LARGE_PAGE, end // LARGE_PAGE * LARGE_PAGE
        if mode.startswith("rw") and file == "0" and start < end:
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_COLLAPSE)


def drop_capabilities() -> None:
    """Give up every capability forever, including those that a later program could get back."""
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) != 0:
            break
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
    syscall("capset", header, ctypes.create_string_buffer(bytes(24)))


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result
