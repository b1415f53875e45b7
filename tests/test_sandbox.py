"""A student's process can harm only itself, knows no answers, and leaves nothing behind."""

import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import ordinary_user
import pytest

from autograder.checks import escapes
from autograder.checks.layers import LIMITS, Lab, Probe, answer_names
from autograder.checks.observe import pids_named, process_name, status_of
from autograder.isolation.process import StudentProcess
from autograder.isolation.zygote import Zygote
from autograder.student import sandbox
from autograder.verdicts import Broken, Verdict

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox needs Linux")

PATIENCE = 30  # seconds a test waits for something that must happen before it gives up


@pytest.fixture(scope="module")
def lab():
    with Lab() as lab:
        yield lab


@pytest.fixture
def zygote(lab):
    return lab.with_root


@pytest.fixture
def open_zygote(lab):
    """Its student processes have no private root: only Landlock hides the files of the machine."""
    return lab.without_root


@pytest.fixture
def student(zygote):
    process = StudentProcess.spawn(zygote, LIMITS)
    yield process
    process.end()


def needs(process, layer: str) -> None:
    """Skip where the machine lacks the layer that a test is about; `test_doctor` checks whether it should have it."""
    if layer in process.missing_layers:
        process.end()
        pytest.skip(f"{layer}: {process.missing_layers[layer]}")


def run(process, source: str, seconds: float = PATIENCE) -> dict:
    return process.ask({"do": "cell", "source": source}, time.monotonic() + seconds)["value"]


def printed(process, source: str) -> str:
    done = run(process, source)
    assert done["error"] is None
    return done["output"].strip()


def refused(process, source: str) -> str:
    """The kind of error that `source` ends in."""
    done = run(process, source)
    assert done["error"] is not None, done["output"]
    return done["error"]["kind"]


def death(process, source: str, seconds: float = PATIENCE) -> Broken:
    with pytest.raises(Broken) as caught:
        run(process, source, seconds)
    return caught.value


def until(condition) -> bool:
    """Wait until a condition holds; False when it takes too long."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > ends:
            return False
        time.sleep(0.05)
    return True


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def descendants(pid: int) -> list[int]:
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [pid]
    for parent in found:
        found += [child for child, its_parent in parents.items() if its_parent == parent]
    return found[1:]


# What a student's process knows


def test_a_search_from_inside_finds_no_answer(student):
    """Modules, imports, live objects, raw memory, and every file it can see."""
    assert Probe(student).run(escapes.find_answers, *answer_names(), ["/"]) == []


def test_a_search_finds_no_answer_with_landlock_alone(open_zygote, root):
    tops = ["/", str(root), *{sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}]
    process = StudentProcess.spawn(open_zygote, LIMITS)
    assert Probe(process).run(escapes.find_answers, *answer_names(), tops) == []
    process.end()


def test_the_search_finds_answers_in_the_grader_itself(root):
    """In this process, which has just read them."""
    digests, halves = answer_names()
    whole = [first + second for first, second in halves]
    found = dict(escapes.find_answers(digests, halves, [str(root / "autograder")]))
    assert set(found) == {"modules", "imports", "folders", "files", "objects", "memory"}
    assert whole


@pytest.mark.parametrize("folder", ["suites", "reference", "mistakes", "exam", "checks", "solutions"])
def test_nothing_that_knows_answers_can_be_imported(student, folder):
    assert refused(student, f"import autograder.{folder}") == "ModuleNotFoundError"


def test_sys_path_has_only_python_and_its_libraries(student, root):
    places = json.loads(printed(student, "import json, sys; print(json.dumps(sys.path))"))
    assert str(root) not in places
    assert all(place.startswith((sys.base_prefix, sys.prefix)) for place in places)


def test_it_is_told_nothing_by_the_environment(student):
    names = json.loads(printed(student, "import json, os; print(json.dumps(sorted(os.environ)))"))
    folders = {"HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR", "TORCHINDUCTOR_CACHE_DIR"}
    threads = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
    memory = {"MALLOC_MMAP_THRESHOLD_"}
    assert set(names) <= folders | threads | memory | {"LANG", "PATH", "MPLBACKEND", "LD_LIBRARY_PATH"}


@pytest.mark.parametrize("place", ["/proc/self/environ", "/proc/1/cmdline", "/etc/passwd", "/sys/kernel", "/dev/shm"])
@pytest.mark.parametrize("kind", ["zygote", "open_zygote"])
def test_it_cannot_read_files_of_the_machine(request, kind, place):
    process = StudentProcess.spawn(request.getfixturevalue(kind), LIMITS)
    look = f"import os; os.listdir({place!r}) if os.path.isdir({place!r}) else open({place!r}).read()"
    assert refused(process, look) in ("FileNotFoundError", "PermissionError")
    process.end()


def test_it_inherits_only_its_connection(student):
    source = """
        import json, os, stat
        kinds = {}
        for number in range(1024):
            try:
                mode = os.fstat(number).st_mode
            except OSError:
                continue
            kinds[number] = "socket" if stat.S_ISSOCK(mode) else os.fstat(number).st_rdev
        print(json.dumps(list(kinds.values())))
    """
    null = os.stat("/dev/null").st_rdev
    assert json.loads(printed(student, inspect.cleandoc(source))) == [null, null, null, "socket"]


# What it may change


def test_it_writes_only_in_its_scratch_folder(student):
    assert printed(student, "open('mine', 'w').write('x'); print(open('mine').read())") == "x"
    for place in ("/mine", "/usr/lib/mine", sysconfig.get_path("purelib") + "/mine.pth"):
        assert refused(student, f"open({place!r}, 'w')") in ("OSError", "PermissionError", "FileNotFoundError")


@pytest.mark.parametrize("kind", ["zygote", "open_zygote"])
def test_temporary_files_and_figures_go_to_the_scratch_folder(request, kind):
    process = StudentProcess.spawn(request.getfixturevalue(kind), LIMITS)
    draw = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.savefig('figure.png')"
    assert (
        printed(process, f"{draw}\nimport os, tempfile; print(os.path.dirname(tempfile.mkdtemp()) == os.getcwd())")
        == "True"
    )
    process.end()


def test_the_size_of_the_scratch_folder_is_limited(student):
    needs(student, "mount")
    fill = "for i in range(1000): open(f'f{i}', 'wb').write(bytes(2**20))"
    assert "No space left" in run(student, fill)["error"]["text"]


def test_a_file_cannot_be_larger_than_allowed(student):
    assert "too large" in run(student, f"open('f', 'wb').truncate({LIMITS.file_mb * 2**20 + 1})")["error"]["text"]


def test_students_without_a_private_root_cannot_read_each_other(open_zygote):
    one = StudentProcess.spawn(open_zygote, LIMITS)
    needs(one, "landlock")
    other = StudentProcess.spawn(open_zygote, LIMITS)
    place = printed(one, "import os; open('mine', 'w').write('x'); print(os.path.abspath('mine'))")
    assert os.path.exists(place)
    assert os.stat(os.path.dirname(place)).st_mode & 0o077 == 0
    assert refused(other, f"open({place!r})") == "PermissionError"
    one.end(), other.end()
    assert until(lambda: not os.path.exists(os.path.dirname(place)))


def test_a_scratch_folder_is_cleared_whatever_its_permissions():
    program = """
        import os, tempfile
        from autograder.student import sandbox
        outside, folder = tempfile.mkdtemp(), tempfile.mkdtemp()
        os.chmod(outside, 0o750)
        os.symlink(outside, folder + "/link")
        os.makedirs(folder + "/a/b")
        open(folder + "/a/b/file", "w").close()
        os.chmod(folder + "/a/b", 0o000)
        os.chmod(folder + "/a", 0o300)
        sandbox.clear(folder)
        assert not os.path.exists(folder), "something is left"
        assert os.stat(outside).st_mode & 0o777 == 0o750, "the link was followed"
        os.rmdir(outside)
    """
    done = ordinary_user.run(sys.executable, "-c", inspect.cleandoc(program))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "attempt",
    [
        "os.fork()",
        "os.execv('/usr/lib/x', ['x'])",
        "os.kill(-1, 9)",
        "os.kill(os.getppid() or 2, 9)",
        "os.killpg(1 if os.getpid() != 1 else 2, 9)",
        "resource.prlimit(2, resource.RLIMIT_CPU, (1, 1))",
        "os.sched_setaffinity(2, {0})",
        "os.setuid(0)",
        "os.chroot('/usr')",
        "os.chmod('.', 0o777)",
        "os.memfd_create('x')",
        "os.mkfifo('x')",
        "socket.socket()",
        "socket.socket(socket.AF_UNIX)",
    ],
)
def test_the_filter_refuses(student, attempt):
    done = run(student, f"import os, resource, socket\n{attempt}")
    assert done["error"]["kind"] == "PermissionError"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can stop being root")
def test_roots_student_is_nobody(student):
    needs(student, "user")
    with process_name() as name:
        Probe(student).run(escapes.become_root, name)
        assert status_of(name)["Uid"].split() == [str(sandbox.NOBODY)] * 4


def test_limits_cannot_be_raised_again(student):
    for limit in ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_NOFILE"):
        source = f"import resource as r; r.setrlimit(r.{limit}, (2**40, 2**40))"
        assert refused(student, source) in ("ValueError", "PermissionError")


# How it ends


@pytest.mark.parametrize(
    "source",
    [
        "while True: pass",
        "import ctypes; ctypes.CDLL(None).pause()",
        "import signal, time\nfor n in range(1, 20):\n    if n not in (9, 19): signal.signal(n, signal.SIG_IGN)\ntime.sleep(3600)",
        "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
        "input = __import__('sys').stdin.read\nwhile True: input()",
    ],
    ids=["python", "C", "ignoring signals", "deadlock", "waiting for input"],
)
def test_code_that_never_ends_is_killed(zygote, source):
    process = StudentProcess.spawn(zygote, LIMITS)
    with process_name() as name:
        Probe(process).run(escapes.become_root, name)
        assert pids_named(name)
        broken = death(process, source, seconds=0.5)
        assert (broken.verdict, broken.fatal) == (Verdict.TIMEOUT, True)
        assert pids_named(name) == []


def test_a_stopped_process_is_killed(zygote):
    process = StudentProcess.spawn(zygote, LIMITS, without=("pid",))
    broken = death(process, "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", seconds=0.5)
    assert broken.verdict is Verdict.TIMEOUT


@pytest.mark.parametrize("without", [(), ("pid",)], ids=["first of its namespace", "no namespace"])
def test_exceeding_the_processor_time_is_a_timeout(zygote, without):
    process = StudentProcess.spawn(zygote, replace(LIMITS, cpu_seconds=1), without)
    assert death(process, "while True: pass").verdict is Verdict.TIMEOUT


@pytest.mark.parametrize(
    "source",
    [
        "import torch; torch.empty(100 * 2**30, dtype=torch.uint8)",
        "import numpy; numpy.ones(100 * 2**30, dtype=numpy.uint8)",
        "bytes(100 * 2**30)",
        "many = []\nwhile True: many.append(bytes(2**20))",
    ],
    ids=["torch", "numpy", "python", "little by little"],
)
def test_too_much_memory_is_a_memory_error_and_the_process_lives_on(student, source):
    assert refused(student, source) == "MemoryError"
    assert printed(student, "many = None; print('alive')") == "alive"


@pytest.mark.parametrize(
    "source",
    ["import os; os._exit(0)", "import ctypes; ctypes.string_at(0)", "import os; os.abort()"],
    ids=["exit", "segfault", "abort"],
)
def test_a_process_that_ends_itself_is_an_error(zygote, source):
    broken = death(StudentProcess.spawn(zygote, LIMITS), source)
    assert (broken.verdict, broken.fatal) == (Verdict.ERROR, True)


def test_sys_exit_is_an_ordinary_error(student):
    assert refused(student, "import sys; sys.exit(0)") == "SystemExit"
    assert printed(student, "print('alive')") == "alive"


def test_a_flood_of_output_is_cut(student):
    done = run(student, "for _ in range(10_000): print('x' * 1023)")
    assert len(done["output"]) < LIMITS.output_kb * 1024 + 100
    assert "more characters" in done["output"]


def test_native_output_is_discarded(student):
    assert printed(student, "import os; os.write(1, b'x' * 2**20); os.write(2, b'x'); print('end')") == "end"


def test_a_forged_message_is_not_an_answer(zygote):
    forge = "import os, stat\nfor n in range(3, 128):\n    try: os.write(n, b'\\xff' * 64)\n    except OSError: pass"
    assert death(StudentProcess.spawn(zygote, LIMITS), forge).verdict is Verdict.POLICY


def test_no_grandchild_survives(zygote):
    """Without seccomp, which would refuse to start a grandchild."""
    process = StudentProcess.spawn(zygote, LIMITS, without=("seccomp",))
    needs(process, "pid")
    with process_name() as name:
        Probe(process).run(escapes.leave_a_process, name)
        assert pids_named(name)
        process.end()
        assert pids_named(name) == []


def test_more_threads_than_allowed_cannot_be_started(student):
    source = (
        "import threading\nwait = threading.Event()\nfor _ in range(100): threading.Thread(target=wait.wait).start()"
    )
    assert refused(student, source) == "RuntimeError"


# What the layers report


@pytest.mark.parametrize("layer", ["pid", "network", "ipc", "landlock", "capabilities", "seccomp"])
def test_a_layer_left_out_is_reported(zygote, layer):
    process = StudentProcess.spawn(zygote, LIMITS, without=(layer,))
    assert process.missing_layers[layer] == sandbox.LEFT_OUT
    process.end()


def test_a_private_root_left_out_is_reported(open_zygote):
    process = StudentProcess.spawn(open_zygote, LIMITS)
    assert process.missing_layers["mount"] == sandbox.LEFT_OUT
    process.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has that layer")
def test_staying_root_is_reported(zygote):
    process = StudentProcess.spawn(zygote, LIMITS, without=("user",))
    assert process.missing_layers["user"] == sandbox.LEFT_OUT
    process.end()


def test_a_container_that_refuses_namespaces_still_keeps_every_promise():
    """Docker's own filter refuses `unshare` and `mount`; Landlock and our filter still work."""
    program = """
        import errno
        from autograder.checks.layers import LIMITS
        from autograder.isolation import guarantees
        from autograder.isolation.process import StudentProcess
        from autograder.isolation.zygote import Zygote
        from autograder.student.sandbox import kernel, seccomp

        def dockers_filter(me):
            lines = [(seccomp.LOAD, 0, 0, seccomp.NUMBER)]
            for name in ("unshare", "mount", "setns", "pivot_root"):
                lines.append((seccomp.JUMP_EQUAL, 0, 1, kernel.number(name)))
                lines.append((seccomp.RETURN, 0, 0, seccomp.ERRNO | errno.EPERM))
            return [*lines, (seccomp.RETURN, 0, 0, seccomp.ALLOW)]

        seccomp._program = dockers_filter
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        seccomp.install()
        zygote = Zygote()
        process = StudentProcess.spawn(zygote, LIMITS)
        process.end()
        zygote.close()
        assert {"mount", "pid", "network", "ipc"} <= set(process.missing_layers), process.missing_layers
        assert guarantees.unmet(process.missing_layers) == [], process.missing_layers
    """
    done = subprocess.run(
        [sys.executable, "-c", inspect.cleandoc(program)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_students_do_not_share_their_thread_limit(zygote, student):
    source = f"import threading\nwait = threading.Event()\nfor _ in range({LIMITS.processes - 2}): threading.Thread(target=wait.wait).start()"
    needs(student, "namespaces")
    others = [StudentProcess.spawn(zygote, LIMITS) for _ in range(2)]
    assert [run(process, source)["error"] for process in (student, *others)] == [None] * 3
    for process in others:
        process.end()


# What the zygote survives, and what it leaves behind


@pytest.fixture(scope="module")
def temporary(tmp_path_factory):
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def short_lived(temporary):
    """A zygote that a test may kill or close, with its own temporary folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        zygote = Zygote()
        yield zygote
        zygote.close()


def test_a_killed_zygote_is_replaced_and_its_students_die(short_lived):
    orphan = StudentProcess.spawn(short_lived, LIMITS)
    first = short_lived.process.pid
    family = descendants(first)
    assert len(family) == 2  # supervisor and student
    os.kill(first, signal.SIGKILL)
    process = StudentProcess.spawn(short_lived, LIMITS)
    assert short_lived.process.pid != first
    assert printed(process, "print('alive')") == "alive"
    assert until(lambda: not any(map(alive, family)))
    assert death(orphan, "1").fatal
    process.end()


def test_closing_a_zygote_leaves_no_process_mount_or_folder(short_lived, temporary):
    mounts = Path("/proc/self/mountinfo").read_text()
    running = StudentProcess.spawn(short_lived, LIMITS)
    family = [short_lived.process.pid, *descendants(short_lived.process.pid)]
    assert len(family) == 3
    short_lived.close()
    assert until(lambda: not any(map(alive, family)))
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert list(temporary.iterdir()) == []
    running.end()


def test_everything_dies_with_the_grader():
    program = """
        import sys, time
        from autograder.checks.layers import LIMITS
        from autograder.isolation.process import StudentProcess
        from autograder.isolation.zygote import Zygote
        zygote = Zygote()
        process = StudentProcess.spawn(zygote, LIMITS)
        sys.stdout.write(zygote.spare + "\\n")
        sys.stdout.flush()
        process.ask({"do": "cell", "source": "while True: pass"}, time.monotonic() + 3600)
    """
    command = [sys.executable, "-c", inspect.cleandoc(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as grader:
        spare = Path(grader.stdout.readline().strip())
        family = descendants(grader.pid)
        assert len(family) == 3  # zygote, supervisor, student
        grader.kill()
    assert until(lambda: not any(map(alive, family)))
    shutil.rmtree(spare)  # the killed grader could not do it


class WithALateLibrary(Zygote):
    """A zygote with one more folder of libraries."""

    folder = ""

    def _settings(self, control):
        settings = super()._settings(control)
        return settings | {name: [*settings[name], self.folder] for name in ("libraries", "readable")}


def test_a_library_below_the_temporary_folder_stays_visible():
    """Python may be installed anywhere, also below /tmp, and late imports must still work."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        Path(folder, "late_library.py").write_text("found = True\n")
        WithALateLibrary.folder = folder
        zygote = WithALateLibrary()
        try:
            process = StudentProcess.spawn(zygote, LIMITS)
            asked = {"do": "cell", "source": "import late_library\nlate_library.found"}
            done = process.ask(asked, time.monotonic() + 30)["value"]
            process.end()
        finally:
            zygote.close()
    assert done == {"output": "True\n", "error": None}
