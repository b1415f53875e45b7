"""Grade a whole folder: in parallel, with a journal so that a stopped run goes on where it stopped."""

import hashlib
import json
import multiprocessing
import os
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from . import autograded, gradebook, report, trust
from .catalogue import catalogue
from .grading import grade
from .release import SOLUTIONS, course_root
from .submission import LARGEST_FILE, Submission, discover
from .zygote import shared

AHEAD = 4  # submissions waiting per worker: enough to keep it busy, few enough for constant memory


@dataclass(frozen=True)
class Options:
    folder: Path
    out: Path
    jobs: int = 1
    device: str = "cpu"
    db: str = "sqlite:///gradebook.db"
    fresh: bool = False
    trust_submissions: bool = False
    lang: str = "en"
    autograded: Path = Path("autograded")


def run(options: Options, progress: Callable[[dict, int], None] = lambda result, total: None) -> list[dict]:
    """Grade everything in the folder, and write reports, gradebook and autograded notebooks."""
    trust.demand_linux()
    submissions = discover(options.folder)
    if not options.trust_submissions:
        trust.demand(missing_layers(options.device), options.lang)
    options.out.mkdir(parents=True, exist_ok=True)
    journal = Journal(options.out / "journal.jsonl", options.fresh)
    known = {s.exercise for s in submissions} & set(catalogue())
    for exercise in sorted(known):
        _control(exercise, journal.salt, options)
    results = {}
    with gradebook.opened(options.db, known) as book:
        for key, result in _graded(submissions, journal, options):
            results[result["student"], result["exercise"]] = result
            if key is not None:
                journal.add(key, result)
            if result["exercise"] in known:
                gradebook.record(book, result)
            progress(result, len(submissions))
    ordered = [results[s.student, s.exercise] for s in submissions]
    report.write_all(ordered, options.out, options.lang)
    return ordered


class UnsoundGrader(Exception):
    """The grader fails a solution that is known to be right; it must not judge anybody."""


def _control(exercise: str, salt: str, options: Options) -> None:
    """Grade the model solution first. A machine on which it fails would fail everybody."""
    solution = course_root() / SOLUTIONS / exercise / f"{exercise}.ipynb"
    result = grade("control", exercise, str(solution), salt, options.device).result
    if result["verdict"] != "pass":
        reasons = "\n".join(part["message"][options.lang] for part in result["parts"] if part["verdict"] != "pass")
        text = {
            "en": f"On this machine the model solution of {exercise} is not accepted, so nothing was graded:\n{reasons}",
            "zh": f"在这台机器上，{exercise} 的标准解答未能通过，因此没有给任何提交评分：\n{reasons}",
        }
        raise UnsoundGrader(text[options.lang])


def _graded(submissions, journal, options) -> Iterator[tuple[str | None, dict]]:
    """Results as they come, with the key to journal them under; None for those already in the journal."""
    waiting = []
    for submission in submissions:
        key = fingerprint(submission, journal.salt, options)
        if (done := journal.results.get(key)) and _autograded_path(options, submission).exists():
            yield None, done
        else:
            waiting.append((key, submission))
    if options.jobs == 1 or len(waiting) <= 1:
        for key, submission in waiting:
            yield key, work(submission, journal.salt, options)
        return
    context = multiprocessing.get_context("spawn")
    jobs = min(options.jobs, len(waiting))
    with ProcessPoolExecutor(jobs, context, initializer=shared, initargs=(options.device,)) as pool:
        queue, running = iter(waiting), {}
        for key, submission in queue:
            running[pool.submit(work, submission, journal.salt, options)] = key
            if len(running) < options.jobs * AHEAD:
                continue
            yield from _finished(running)
        while running:
            yield from _finished(running)


def _finished(running: dict) -> Iterator[tuple[str, dict]]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        yield running.pop(future), future.result()


def work(submission: Submission, salt: str, options: Options) -> dict:
    """Grade one submission and write its autograded notebook. Runs in a worker."""
    path = str(submission.path) if submission.path else None
    graded = grade(submission.student, submission.exercise, path, salt, options.device)
    exercise = catalogue().get(submission.exercise)
    if exercise is not None:
        script = None
        if submission.path and submission.path.suffix == ".py" and graded.cells:
            script = "\n".join(cell.source for cell in graded.cells)
        autograded.write(_autograded_path(options, submission), exercise, graded, script, options.lang)
    return graded.result


def _autograded_path(options: Options, submission: Submission) -> Path:
    return options.autograded / submission.student / submission.exercise / f"{submission.exercise}.ipynb"


def missing_layers(device: str) -> dict[str, str]:
    """Start a process without student code and ask what holds."""
    limits = next(iter(catalogue().values())).limits
    process = shared(device).spawn(limits)
    process.end()
    return process.missing_layers


class Journal:
    """One line a graded submission, written to the disk before the next is begun."""

    def __init__(self, path: Path, fresh: bool):
        self.path, self.results = path, {}
        salt = os.environ.get("AUTOGRADER_SALT")
        lines = [] if fresh or not path.exists() else path.read_bytes().split(b"\n")
        entries = [entry for entry in map(_entry, lines) if entry]
        kept = next((entry["salt"] for entry in entries if "salt" in entry), None)
        self.salt = salt or kept or secrets.token_hex(16)
        self.results = {entry["key"]: entry["result"] for entry in entries if "key" in entry}
        with open(path, "wb" if fresh else "ab") as file:
            os.chmod(path, 0o600)
            if not fresh and lines and lines[-1]:
                file.write(b"\n")  # a line cut short by a power cut must not spoil the next
            if kept != self.salt:
                file.write(json.dumps({"salt": self.salt}).encode() + b"\n")

    def add(self, key: str, result: dict) -> None:
        with open(self.path, "ab") as file:
            file.write(json.dumps({"key": key, "result": result}, ensure_ascii=False).encode(errors="replace") + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _entry(line: bytes) -> dict | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def fingerprint(submission: Submission, salt: str, options: Options) -> str:
    """Changes when the submission, the course's grader, the salt or the device does."""
    content = hashlib.blake2b(digest_size=16)
    for text in (submission.student, submission.exercise, salt, options.device, options.lang, _grader()):
        content.update(text.encode(errors="surrogateescape") + b"\0")
    try:
        if submission.path and submission.path.is_file():
            with open(submission.path, "rb") as file:
                content.update(submission.path.suffix.encode() + file.read(LARGEST_FILE + 1))
    except OSError as refused:
        content.update(str(refused).encode())
    return content.hexdigest()


@cache
def _grader() -> str:
    content = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in (".py", ".toml"):
            content.update(path.read_bytes())
    content.update(json.dumps({n: asdict(e.limits) for n, e in catalogue().items()}).encode())
    return content.hexdigest()
