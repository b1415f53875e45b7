"""Grade a whole class: in parallel or on a cluster, going on where a stopped run stopped.

Results pass through one at a time, from the workers to the journal, the gradebook and the autograded notebooks.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import report, trust
from .catalogue import catalogue
from .collecting import collect
from .entering import Entering
from .files import whole_files, write_whole
from .fingerprint import fingerprint, grader
from .journal import Journal
from .submission import Submission, loaded
from .work import Outcome, Task, control, given_up, missing_layers, work, work_anywhere
from .workers import Lost, Workers, dying

JOURNAL, COLLECTED = "journal.jsonl", ".collected"  # no student is called so


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
    dask: str | None = None  # the address of a cluster's scheduler


def run(
    options: Options,
    progress: Callable[[dict, int], None] = lambda result, total: None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[dict]:
    """Grade everything in the folder, and write reports, gradebook and autograded notebooks."""
    trust.demand_linux()
    submissions = collect(options.folder, options.out / COLLECTED, options.lang, tell)
    options.out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(options.out / JOURNAL, options.fresh))
        crew = stack.enter_context(_crew(options))
        book = stack.enter_context(Entering(options.db, journal))
        waiting = []
        for submission in submissions:
            if _is_done(submission, journal, options):
                book.enter(submission, graded_now=False)
                progress(journal.result(submission.student, submission.exercise), len(submissions))
            else:
                waiting.append(submission)
        for task, outcome in _graded(waiting, crew, journal.salt, options, book.prepare):
            if outcome.notebook is not None:
                write_whole(_autograded_path(options, task.submission), outcome.notebook)
            journal.add(task.key, outcome.result)
            book.enter(task.submission, graded_now=True)
            progress(outcome.result, len(submissions))
        results = [journal.result(s.student, s.exercise) for s in submissions]
        with whole_files(options.out) as draft:
            report.write_all(results, draft, options.lang, submissions)
        book.finish()
    return results


def _crew(options: Options):
    if options.dask is None:
        return Workers(options.jobs, options.device)
    from .cluster import Cluster

    return Cluster(options.dask, options.lang)


def _is_done(submission: Submission, journal: Journal, options: Options) -> bool:
    key = fingerprint(loaded(submission), journal.salt, options.device, options.lang)
    if not journal.holds(submission.student, submission.exercise, key):
        return False
    return submission.exercise not in catalogue() or _autograded_path(options, submission).exists()


def _graded(
    waiting: list[Submission], crew, salt: str, options: Options, meanwhile: Callable[[], None]
) -> Iterator[tuple[Task, Outcome]]:
    """What comes back, as it comes. Nobody is judged by a machine that has not proved itself."""
    if not waiting:
        return
    known = sorted({submission.exercise for submission in waiting} & set(catalogue()))
    if options.dask is not None:
        graders = {exercise: grader(exercise) for exercise in known}
        function = partial(work_anywhere, graders=graders, trusted=options.trust_submissions)
        meanwhile()
    else:
        function = work
        if not options.trust_submissions:
            [missing] = _certain(crew, missing_layers, [options.device])
            trust.demand(missing)
        _certain(crew, partial(control, salt=salt, device=options.device), known, meanwhile)
    for task, value in crew.map(function, _tasks(waiting, salt, options)):
        yield task, given_up(task, value.tries) if isinstance(value, Lost) else value


def _certain(crew: Workers, function: Callable, about: list, meanwhile: Callable[[], None] = lambda: None) -> list:
    """What comes back for each; that nothing comes back is not accepted."""
    values = [value for _, value in crew.map(function, about, meanwhile)]
    if any(isinstance(value, Lost) for value in values):
        raise dying()
    return values


def _tasks(waiting: list[Submission], salt: str, options: Options) -> Iterator[Task]:
    """A submission is read when its turn comes, so that few are in memory."""
    for submission in waiting:
        submission = loaded(submission)
        key = fingerprint(submission, salt, options.device, options.lang)
        yield Task(key, submission, salt, options.device, options.lang)


def _autograded_path(options: Options, submission: Submission) -> Path:
    return options.autograded / submission.student / submission.exercise / f"{submission.exercise}.ipynb"
