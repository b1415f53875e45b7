"""Statistics of a class: the distribution of marks, pass rates, mistakes by name, and submissions to look at."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import nbformat

from autograder.catalogue import Exercise, catalogue
from autograder.course import released_path, solution_path
from autograder.intake.submission import Submission, read
from autograder.language import Text
from autograder.results import NamedMistake, SubmissionReport
from autograder.sections import Section, section
from autograder.verdicts import Broken, Verdict

from .similarity import alike

MOST_MISTAKES = 20
MOST_PAIRS = 50
SLOWEST = 10
BINS = 10  # of the distribution, each a tenth of the points
NEED_A_LOOK = (Verdict.GRADER_ERROR, Verdict.POLICY, Verdict.TIMEOUT, Verdict.MEMORY, Verdict.ERROR)


@dataclass(frozen=True)
class ExerciseRow:
    """How one exercise went."""

    name: str
    title: Text
    submissions: int
    right: int
    mean: float
    median: float
    max_score: float
    distribution: list[int]


@dataclass(frozen=True)
class PartRow:
    """How many submissions got one part right."""

    exercise: str
    part: str
    right: int
    total: int
    section: Section


@dataclass(frozen=True)
class MistakeRow:
    """A mistake, how many submissions made it, and how many submissions the exercise has."""

    exercise: str
    part: str
    mistake: NamedMistake
    count: int
    total: int
    section: Section


@dataclass(frozen=True)
class PairRow:
    """Two submissions that share lines which almost nobody else wrote."""

    exercise: str
    students: tuple[str, str]
    share: float
    rare_lines: int


@dataclass(frozen=True)
class ClassStatistics:
    """Everything that `class.html` shows besides the reports themselves."""

    students: int
    exercises: list[ExerciseRow]
    distribution: list[int]
    parts: list[PartRow]
    mistakes: list[MistakeRow]
    failed: list[SubmissionReport]
    slowest: list[SubmissionReport]
    pairs: list[PairRow]


def class_statistics(reports: list[SubmissionReport], submissions: Iterable[Submission] = ()) -> ClassStatistics:
    """All statistics. Without `submissions`, no similar pairs are found."""
    return ClassStatistics(
        students=len({report.student for report in reports}),
        exercises=by_exercise(reports),
        distribution=distribution(reports),
        parts=pass_rates(reports),
        mistakes=commonest(reports),
        failed=sorted(
            (report for report in reports if report.verdict in NEED_A_LOOK),
            key=lambda report: (NEED_A_LOOK.index(report.verdict), report.exercise, report.student),
        ),
        slowest=sorted(reports, key=lambda report: -report.seconds)[:SLOWEST],
        pairs=likeness(submissions),
    )


def by_exercise(reports: list[SubmissionReport]) -> list[ExerciseRow]:
    """How each exercise went, in the order of their names."""
    found = defaultdict(list)
    for report in reports:
        found[report.exercise].append(report)
    return [
        ExerciseRow(
            name=name,
            title=title(name),
            submissions=len(handed_in),
            right=sum(report.verdict is Verdict.PASS for report in handed_in),
            mean=statistics.mean(report.score for report in handed_in),
            median=statistics.median(report.score for report in handed_in),
            max_score=handed_in[0].max_score,
            distribution=distribution(handed_in),
        )
        for name, handed_in in sorted(found.items())
    ]


def distribution(reports: list[SubmissionReport]) -> list[int]:
    """How many submissions got up to 10 %, up to 20 %, … up to 100 % of their points."""
    bins = [0] * BINS
    for report in reports:
        share = report.score / report.max_score if report.max_score else 0.0
        bins[min(int(share * BINS), BINS - 1)] += 1
    return bins


def pass_rates(reports: list[SubmissionReport]) -> list[PartRow]:
    """How many submissions got each part right, in the order of the catalogue."""
    totals: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    for report in reports:
        for part in report.parts:
            totals[report.exercise, part.id] += 1
            right[report.exercise, part.id] += part.verdict is Verdict.PASS
    return [
        PartRow(e.name, part.name, right[e.name, part.name], totals[e.name, part.name], section(e, part))
        for e in catalogue().values()
        for part in e.parts
        if totals[e.name, part.name]
    ]


def commonest(reports: list[SubmissionReport]) -> list[MistakeRow]:
    """The mistakes of the class by name, most frequent first."""
    counts = Counter((r.exercise, p.id, p.mistake) for r in reports for p in r.parts if p.mistake)
    handed_in = Counter(report.exercise for report in reports)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0][0], item[0][1], item[0][2].name))
    return [
        MistakeRow(exercise, part, mistake, count, handed_in[exercise], _taught(exercise, part))
        for (exercise, part, mistake), count in ranked[:MOST_MISTAKES]
    ]


def _taught(exercise: str, part: str) -> Section:
    return section(catalogue()[exercise], catalogue()[exercise].part(part))


def likeness(submissions: Iterable[Submission]) -> list[PairRow]:
    """Pairs of submissions to the same exercise that share lines which almost nobody else wrote."""
    answers: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for submission in submissions:
        if exercise := catalogue().get(submission.exercise):
            answers[exercise.name][submission.student] = _own_cells(submission, exercise)
    pairs = [
        PairRow(name, (pair.one, pair.other), pair.share, pair.rare_lines)
        for name, written in sorted(answers.items())
        for pair in alike(written, _known(name))
    ]
    return sorted(pairs, key=lambda pair: -pair.share)[:MOST_PAIRS]


def _own_cells(submission: Submission, exercise: Exercise) -> list[str]:
    """The answer cells. In a script, or if the cell names are lost: all cells."""
    try:
        cells, _ = read(submission, exercise)
    except Broken:
        return []
    return [cell.source for cell in cells if cell.answers] or [cell.source for cell in cells]


def _known(exercise: str) -> list[str]:
    """The code of the released notebook and of the model solution."""
    notebooks = (nbformat.read(path(exercise), as_version=4) for path in (released_path, solution_path))
    return [cell.source for notebook in notebooks for cell in notebook.cells if cell.cell_type == "code"]


def title(exercise: str) -> Text:
    known = catalogue().get(exercise)
    return known.title if known else Text(exercise, exercise)
