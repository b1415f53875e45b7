"""Grade a whole class, in parallel or on a cluster. A stopped run can be continued.

Each result goes from a worker to the autograded notebook, the journal and the gradebook before the next one.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from autograder.catalogue import catalogue
from autograder.files import whole_files, write_whole
from autograder.intake.collect import collect
from autograder.intake.submission import Submission, loaded
from autograder.isolation import guarantees
from autograder.reports import write
from autograder.results import SubmissionReport

from .fingerprint import fingerprint, grader
from .grade import Conditions
from .journal import Journal
from .pending import PendingMarks
from .task import Crew, Lost, T, Task, TaskResult, accepted_layers, control, given_up, run_task, run_task_on_stranger
from .workers import Workers, dying

JOURNAL, COLLECTED = "journal.jsonl", ".collected"  # no student has such a name

Progress = Callable[[SubmissionReport, int], None]  # a report, and how many there will be


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
    progress: Progress = lambda report, total: None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[SubmissionReport]:
    """Grade everything in the folder, and write reports, gradebook and autograded notebooks."""
    guarantees.demand_linux()
    submissions = collect(options.folder, options.out / COLLECTED, options.lang, tell)
    options.out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(options.out / JOURNAL, options.fresh))
        crew = stack.enter_context(_crew(options))
        book = stack.enter_context(PendingMarks(options.db, journal))
        waiting = []
        for submission in submissions:
            if _is_done(submission, journal, options):
                book.enter(submission, graded_now=False)
                progress(journal.report(submission.student, submission.exercise), len(submissions))
            else:
                waiting.append(submission)
        for task, result in _graded(waiting, crew, journal.salt, options, book.prepare):
            if result.notebook is not None:
                write_whole(_autograded_path(options, task.submission), result.notebook)
            journal.add(task.key, result.report)
            book.enter(task.submission, graded_now=True)
            progress(result.report, len(submissions))
        reports = [journal.report(s.student, s.exercise) for s in submissions]
        with whole_files(options.out) as draft:
            write.write_all(reports, draft, options.lang, submissions)
        book.finish()
    return reports


def _crew(options: Options) -> AbstractContextManager[Crew]:
    if options.dask is None:
        return Workers(options.jobs, options.device)
    from .dask import Cluster

    return Cluster(options.dask)


def _is_done(submission: Submission, journal: Journal, options: Options) -> bool:
    key = fingerprint(loaded(submission), journal.salt, options.device, options.lang)
    if not journal.holds(submission.student, submission.exercise, key):
        return False
    return submission.exercise not in catalogue() or _autograded_path(options, submission).exists()


def _graded(
    waiting: list[Submission], crew: Crew, salt: str, options: Options, meanwhile: Callable[[], None]
) -> Iterator[tuple[Task, TaskResult]]:
    """Grade the waiting submissions; yield results as they come. Every machine must first pass the model solution."""
    if not waiting:
        return
    known = sorted({submission.exercise for submission in waiting} & set(catalogue()))
    conditions = Conditions(salt, options.device)
    function: Callable[[Task], TaskResult] = run_task
    if options.dask is not None:  # every machine of the cluster is tested when it gets its first task
        graders = {exercise: grader(exercise) for exercise in known}
        function = partial(run_task_on_stranger, graders=graders, trusted=options.trust_submissions)
    else:
        accepting = partial(accepted_layers, trusted=options.trust_submissions)
        [may_lack] = _certain(crew, accepting, [options.device])
        conditions = Conditions(salt, options.device, may_lack)
        _certain(crew, partial(control, conditions=conditions), known, meanwhile)
        meanwhile = _nothing
    for task, value in crew.map(function, _tasks(waiting, conditions, options), meanwhile):
        yield task, given_up(task, value.tries) if isinstance(value, Lost) else value


def _nothing() -> None:
    pass


def _certain(
    crew: Crew, function: Callable[[T], object], about: list[T], meanwhile: Callable[[], None] = _nothing
) -> list[Any]:
    """The value for each item. Raises if a worker died at every try."""
    values = [value for _, value in crew.map(function, about, meanwhile)]
    if any(isinstance(value, Lost) for value in values):
        raise dying()
    return values


def _tasks(waiting: list[Submission], conditions: Conditions, options: Options) -> Iterator[Task]:
    """The tasks. A submission is read only when it is next, so that few are in memory."""
    for submission in waiting:
        submission = loaded(submission)
        key = fingerprint(submission, conditions.salt, options.device, options.lang)
        yield Task(key, submission, conditions, options.lang)


def _autograded_path(options: Options, submission: Submission) -> Path:
    return options.autograded / submission.student / submission.exercise / f"{submission.exercise}.ipynb"
