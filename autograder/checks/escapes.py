"""What a hostile answer would try.

Each function runs as student code: its source is sent to a student's process, so it imports what it needs, takes and
returns plain data, and says what it managed to do. Whether it did is judged from outside wherever that is possible
(`doctor`). None of them harms the machine on which it succeeds.
"""


def touch_files(readable, writable, secret) -> str:
    """Read a file outside the scratch folder, and write to one that anybody may write to."""
    text = ""
    try:
        with open(readable) as file:
            text = file.read()
    except OSError:
        pass
    try:
        with open(writable, "w") as file:
            file.write(secret)
    except OSError:
        pass
    return text


def call_out(tcp, udp, abstract) -> None:
    """Speak to the outside in three ways."""
    import socket

    inet, unix, stream = socket.AF_INET, socket.AF_UNIX, socket.SOCK_STREAM
    for family, kind, address in (
        (inet, stream, ("127.0.0.1", tcp)),
        (inet, socket.SOCK_DGRAM, ("127.0.0.1", udp)),
        (unix, stream, "\0" + abstract),
    ):
        try:
            with socket.socket(family, kind) as caller:
                caller.settimeout(2)
                caller.connect(address)
                caller.send(b"hello")
        except OSError:
            pass


def leave_a_process(name) -> None:
    """Start a grandchild in a session of its own and let go of it."""
    import ctypes
    import os
    import time

    try:
        child = os.fork()
    except OSError:
        return
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(15, name.encode())
            time.sleep(60)
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.2)


def share_memory(key, size) -> None:
    """Make a segment of memory that every process of the machine can find. A size of 0 removes it again."""
    import ctypes

    libc = ctypes.CDLL(None)
    segment = libc.shmget(key, size, 0o1600 if size else 0)
    if segment >= 0 and not size:
        libc.shmctl(segment, 0, None)


def become_root(name) -> None:
    """Take back root's identity, and wear a name by which the process is known outside."""
    import contextlib
    import ctypes
    import os

    ctypes.CDLL(None).prctl(15, name.encode())
    with contextlib.suppress(OSError):
        os.setresuid(0, 0, 0)


def use_privilege(name) -> bool:
    """Change the root folder, as only a privileged process may."""
    import ctypes
    import os

    ctypes.CDLL(None).prctl(15, name.encode())
    try:
        os.chroot("/usr")
    except OSError:
        return False
    return True


def gain_privilege(name) -> None:
    """Make a user namespace, in which this process would have every privilege."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.prctl(15, name.encode())
    libc.unshare(0x10000000)


def exhaust(gigabytes, megabytes, threads) -> list:
    """Take more memory, write a larger file and start more threads than are allowed."""
    import threading

    import torch

    done = []
    for size in (100, gigabytes):
        try:
            torch.empty(size * 2**30, dtype=torch.uint8)
            done.append("memory")
            break
        except (RuntimeError, MemoryError):
            pass
    try:
        with open("large", "wb") as file:
            for _ in range(megabytes):
                file.write(bytes(2**20))
        done.append("file")
    except OSError:
        pass
    finish = threading.Event()
    try:
        for _ in range(threads):
            threading.Thread(target=finish.wait).start()
        done.append("threads")
    except (RuntimeError, MemoryError):
        pass
    finish.set()
    return done


def flood(kilobytes) -> None:
    """Print far too much."""
    for _ in range(kilobytes):
        print("x" * 1023)  # noqa: T201


def sleep_for_ever(name) -> None:
    import ctypes
    import time

    ctypes.CDLL(None).prctl(15, name.encode())
    while True:
        time.sleep(1)


def work_for_ever() -> None:
    while True:
        pass


def read_environment() -> list:
    """Every variable this process or a neighbour was started with, and the home folder."""
    import ctypes
    import os

    known = [f"{name}={value}" for name, value in os.environ.items()]
    native = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    count = 0
    while native[count]:
        known.append(native[count].decode(errors="replace"))
        count += 1
    for process in ("self", "1", str(os.getppid())):
        try:
            with open(f"/proc/{process}/environ") as file:
                known.append(file.read())
        except OSError:
            pass
    return [os.path.expanduser("~"), "\n".join(known)]


def find_answers(digests, halves, tops) -> list:
    """Search for suites, references, mistakes and solutions, and say where some were found.

    `digests` are of names that only the grader knows; `halves` are such names cut in two. So the search itself
    brings no answer into the memory it searches.
    """
    import contextlib
    import ctypes
    import gc
    import hashlib
    import importlib
    import os
    import sys
    import types

    secret, found = set(digests), {}

    def known(text):
        return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest() in secret

    for name in list(sys.modules):
        first, *rest = name.split(".")
        if known(name.rpartition(".")[2]) or (first == "autograder" and rest and rest[0] != "student"):
            found["modules"] = name
    for name in ("suites", "reference", "mistakes", "exam", "checks", "catalogue"):
        with contextlib.suppress(ImportError):
            found["imports"] = importlib.import_module(f"autograder.{name}").__name__
    package = os.path.dirname(os.path.dirname(sys.modules["autograder.student"].__file__))
    for folder in (package, *(os.path.join(package, name) for name in ("suites", "reference", "mistakes"))):
        try:
            names = os.listdir(folder)
        except OSError:
            names = []
        if names:
            found["folders"] = os.path.join(folder, names[0])
    for top in tops:
        for here, folders, files in os.walk(top):
            for name in filter(known, folders + files):
                found["files"] = os.path.join(here, name)

    gc.unfreeze()
    texts, codes, places = set(), [], set()
    for thing in gc.get_objects():
        places.add(id(thing) >> 20)
        for part in gc.get_referents(thing):
            if type(part) is str:
                texts.add(part)
            elif type(part) is types.CodeType:
                codes.append(part)
    seen = set()
    while codes:
        code = codes.pop()
        if id(code) not in seen:
            seen.add(id(code))
            texts.update([code.co_name, code.co_filename, *code.co_names, *code.co_varnames])
            texts.update(value for value in code.co_consts if type(value) is str)
            codes += [value for value in code.co_consts if type(value) is types.CodeType]
    places.update(id(text) >> 20 for text in texts)
    for text in texts:
        if len(text) < 200 and known(text):
            found["objects"] = text

    # Raw memory: the kernel copies what can be read into a pipe, and refuses the rest without harm.
    libc = ctypes.CDLL(None)
    out, into = os.pipe()
    pairs = [(first.encode(), second.encode()) for first, second in halves]
    for address in (place << 20 | offset for place in places for offset in range(0, 1 << 20, 1 << 16)):
        size = libc.write(into, ctypes.c_void_p(address), ctypes.c_size_t(1 << 16))
        page = os.read(out, size) if size > 0 else b""
        for first, second in pairs:
            at = page.find(first)
            while at >= 0:
                if page.startswith(second, at + len(first)):
                    found["memory"] = f"{address + at:#x}"
                at = page.find(first, at + 1)
    os.close(out)
    os.close(into)
    return sorted(found.items())
