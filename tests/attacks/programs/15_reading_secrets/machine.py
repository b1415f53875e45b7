"""Read the machine's own files: users, mounts, processes, kernel. It must not reach them."""

import os

seen = []
for place in (
    "/etc/passwd",
    "/etc/shadow",
    "/etc/hostname",
    "/proc/mounts",
    "/proc/1/cmdline",
    "/sys/kernel/uevent_seqnum",
):
    try:
        seen.append(f"{place}: {open(place).read()[:50]}")
    except OSError:
        pass
for place in ("/root", "/home", "/var", "/proc", "/dev/shm"):
    try:
        seen += os.listdir(place)
    except OSError:
        pass
if seen:
    raise RuntimeError("@MARK@ read " + "this: " + str(seen[:3]))
