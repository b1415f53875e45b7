"""A seccomp filter that refuses the system calls that no answer needs.

Refused with "operation not permitted": sockets, new processes and programs, signals and limits for other processes,
tracing, namespaces, mounts, other users, file modes and owners, shared memory between processes, files that exist only
in memory, kernel keys, modules and clocks.
Threads are allowed. The filter cannot be removed.
"""

import ctypes
import errno
import os
import platform
import struct

from . import kernel

REFUSED = (
    "socket connect bind listen accept accept4 fork vfork execve execveat ptrace process_vm_readv process_vm_writev "
    "process_madvise tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal pidfd_getfd mount umount2 "
    "pivot_root chroot unshare setns open_tree move_mount fsopen mount_setattr setuid setgid setreuid setregid "
    "setresuid setresgid setgroups setfsuid setfsgid capset bpf perf_event_open userfaultfd io_uring_setup "
    "io_uring_enter io_uring_register keyctl add_key request_key init_module finit_module delete_module kexec_load "
    "reboot swapon swapoff syslog settimeofday clock_settime adjtimex sethostname setdomainname open_by_handle_at "
    "name_to_handle_at acct quotactl chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat setxattr lsetxattr "
    "fsetxattr removexattr mknod mknodat shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semctl semtimedop "
    "mq_open personality memfd_create memfd_secret setpriority ioprio_set sched_setscheduler sched_setparam "
    "sched_setattr migrate_pages move_pages process_mrelease"
).split()

LOAD, JUMP_EQUAL, JUMP_GREATER, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
X32_BIT = 0x40000000


def install(program: list[tuple[int, int, int, int]] | None = None) -> None:
    """Apply the filter, or another filter program, to this process. `no_new_privs` must be set."""
    program = program or _program(os.getpid())
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code)
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer)))
    kernel.prctl(kernel.PR_SET_SECCOMP, kernel.SECCOMP_MODE_FILTER, ctypes.addressof(header))


def _program(me: int) -> list[tuple[int, int, int, int]]:
    """The filter as lines of (operation, jump if true, jump if false, operand). A jump is the number of lines to skip."""
    _, architecture = kernel.ARCHITECTURES[platform.machine()]
    refuse = (RETURN, 0, 0, ERRNO | errno.EPERM)
    allow = (RETURN, 0, 0, ALLOW)
    lines = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (JUMP_GREATER, 0, 1, X32_BIT),
        refuse,
        # clone3 hides its flags behind a pointer. If it seems not to exist, the C library uses clone.
        (JUMP_EQUAL, 0, 1, kernel.number("clone3")),
        (RETURN, 0, 0, ERRNO | errno.ENOSYS),
        # clone makes threads, never processes.
        (JUMP_EQUAL, 0, 4, kernel.number("clone")),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_SET, 0, 1, kernel.CLONE_THREAD),
        allow,
        refuse,
    ]
    for name in ("kill", "tgkill", "prlimit64", "sched_setaffinity"):  # a process may signal and limit itself
        lines += [
            (JUMP_EQUAL, 0, 5, kernel.number(name)),
            (LOAD, 0, 0, FIRST_ARGUMENT),
            (JUMP_EQUAL, 1, 0, 0),
            (JUMP_EQUAL, 0, 1, me),
            allow,
            refuse,
        ]
    for call in kernel.numbers(REFUSED):
        lines += [(JUMP_EQUAL, 0, 1, call), refuse]
    return [*lines, allow]
