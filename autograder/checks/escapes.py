"""What a hostile answer would try.

Each function runs as student code: its source text is sent to a student's process. So it imports what it needs, takes and
returns plain data, and its annotations use builtins only. Whether it succeeded is judged from outside wherever possible
(see `layers`). None of these functions harms the machine if it succeeds.
"""


def touch_files(readable: str, writable: str, secret: str) -> str:
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


def call_out(tcp: int, udp: int, abstract: str) -> None:
    """Connect to listeners outside in three ways."""
    import socket

    inet, unix, stream = socket.AF_INET, socket.AF_UNIX, socket.SOCK_STREAM
    addresses: list[tuple[int, int, tuple[str, int] | str]] = [
        (inet, stream, ("127.0.0.1", tcp)),
        (inet, socket.SOCK_DGRAM, ("127.0.0.1", udp)),
        (unix, stream, "\0" + abstract),
    ]
    for family, kind, address in addresses:
        try:
            with socket.socket(family, kind) as caller:
                caller.settimeout(2)
                caller.connect(address)
                caller.send(b"hello")
        except OSError:
            pass


def leave_a_process(name: str) -> None:
    """Start a grandchild process in its own session and leave it behind."""
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


def share_memory(key: int, size: int) -> None:
    """Make a segment of memory that every process of the machine can find. A size of 0 removes it again."""
    import ctypes

    libc = ctypes.CDLL(None)
    segment = libc.shmget(key, size, 0o1600 if size else 0)
    if segment >= 0 and not size:
        libc.shmctl(segment, 0, None)


def become_root(name: str) -> None:
    """Try to become root. `name` is set as the process name, so that the process can be found from outside."""
    import contextlib
    import ctypes
    import os

    ctypes.CDLL(None).prctl(15, name.encode())
    with contextlib.suppress(OSError):
        os.setresuid(0, 0, 0)


def use_privilege(name: str) -> bool:
    """Change the root folder, as only a privileged process may."""
    import ctypes
    import os

    ctypes.CDLL(None).prctl(15, name.encode())
    try:
        os.chroot("/usr")
    except OSError:
        return False
    return True


def gain_privilege(name: str) -> None:
    """Make a user namespace, in which this process would have every privilege."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.prctl(15, name.encode())
    libc.unshare(0x10000000)


def exhaust(gigabytes: int, megabytes: int, threads: int) -> list[str]:
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


def flood(kilobytes: int) -> None:
    """Print far too much."""
    for _ in range(kilobytes):
        print("x" * 1023)  # noqa: T201


def sleep_forever(name: str) -> None:
    import ctypes
    import time

    ctypes.CDLL(None).prctl(15, name.encode())
    while True:
        time.sleep(1)


def work_forever() -> None:
    while True:
        pass


def read_environment() -> list[str]:
    """The home folder, and the environment variables of this process and its neighbours."""
    import ctypes
    import os

    known = [f"{name}={value}" for name, value in os.environ.items()]
    native = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    count = 0
    while variable := native[count]:
        known.append(variable.decode(errors="replace"))
        count += 1
    for process in ("self", "1", str(os.getppid())):
        try:
            with open(f"/proc/{process}/environ") as file:
                known.append(file.read())
        except OSError:
            pass
    return [os.path.expanduser("~"), "\n".join(known)]


def find_answers(digests: list[str], halves: list[tuple[str, str]], tops: list[str]) -> list[tuple[str, str]]:
    """Search for suites, references, mistakes and solutions. Returns where some were found.

    `digests` are hashes of names that only the grader knows; `halves` are such names cut in two. Whole names would
    themselves lie in the memory that is searched.
    """
    import contextlib
    import ctypes
    import gc
    import hashlib
    import importlib
    import os
    import sys
    import types

    secret = set(digests)
    found: dict[str, str] = {}

    def known(text: str) -> bool:
        return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest() in secret

    for name in list(sys.modules):
        first, *rest = name.split(".")
        if known(name.rpartition(".")[2]) or (first == "autograder" and rest and rest[0] != "student"):
            found["modules"] = name
    for name in ("suites", "reference", "mistakes", "exam", "checks", "catalogue"):
        with contextlib.suppress(ImportError):
            found["imports"] = importlib.import_module(f"autograder.{name}").__name__
    package = os.path.dirname(os.path.dirname(str(sys.modules["autograder.student"].__file__)))
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
    texts: set[str] = set()
    codes: list[types.CodeType] = []
    places: set[int] = set()
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

    # Raw memory: the kernel copies readable pages into a pipe, and returns an error for the others.
    libc = ctypes.CDLL(None)
    out, into = os.pipe()
    pairs = [(first.encode(), second.encode()) for first, second in halves]
    for address in (place << 20 | offset for place in places for offset in range(0, 1 << 20, 1 << 16)):
        size = libc.write(into, ctypes.c_void_p(address), ctypes.c_size_t(1 << 16))
        page = os.read(out, size) if size > 0 else b""
        for begin, end in pairs:
            at = page.find(begin)
            while at >= 0:
                if page.startswith(end, at + len(begin)):
                    found["memory"] = f"{address + at:#x}"
                at = page.find(begin, at + 1)
    os.close(out)
    os.close(into)
    return sorted(found.items())
