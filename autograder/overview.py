"""What a class did, in numbers: the distribution of marks, each part's pass rate, the mistakes by name, who needs a look."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable

import nbformat

from .catalogue import Exercise, catalogue
from .course import EXERCISES, SOLUTIONS, course_root
from .mistakes import mistakes_of
from .sections import section
from .similarity import Pair, alike
from .submission import Submission, read
from .verdicts import Broken, Verdict

MOST_MISTAKES = 20  # more would not be read
MOST_PAIRS = 50
SLOWEST = 10
BINS = 10  # of the distribution, each a tenth of the points
NEED_A_LOOK = tuple(map(str, (Verdict.GRADER_ERROR, Verdict.POLICY, Verdict.TIMEOUT, Verdict.MEMORY, Verdict.ERROR)))


def overview(results: list[dict], submissions: Iterable[Submission] = ()) -> dict:
    """Everything `class.html` shows. Without the submissions themselves nothing is said about likeness."""
    return {
        "students": len({result["student"] for result in results}),
        "exercises": by_exercise(results),
        "distribution": distribution(results),
        "parts": pass_rates(results),
        "mistakes": commonest(results),
        "failed": sorted(
            (result for result in results if result["verdict"] in NEED_A_LOOK),
            key=lambda result: (NEED_A_LOOK.index(result["verdict"]), result["exercise"], result["student"]),
        ),
        "slowest": sorted(results, key=lambda result: -result["seconds"])[:SLOWEST],
        "pairs": likeness(submissions),
    }


def by_exercise(results: list[dict]) -> list[dict]:
    """How each exercise went, in the order of their names."""
    found = defaultdict(list)
    for result in results:
        found[result["exercise"]].append(result)
    return [
        {
            "name": name,
            "title": title(name),
            "submissions": len(handed_in),
            "right": sum(result["verdict"] == Verdict.PASS for result in handed_in),
            "mean": statistics.mean(result["score"] for result in handed_in),
            "median": statistics.median(result["score"] for result in handed_in),
            "max_score": handed_in[0]["max_score"],
            "distribution": distribution(handed_in),
        }
        for name, handed_in in sorted(found.items())
    ]


def distribution(results: list[dict]) -> list[int]:
    """How many submissions got up to 10 %, up to 20 %, … up to 100 % of their points."""
    bins = [0] * BINS
    for result in results:
        share = result["score"] / result["max_score"] if result["max_score"] else 0.0
        bins[min(int(share * BINS), BINS - 1)] += 1
    return bins


def pass_rates(results: list[dict]) -> list[dict]:
    """How many got each part right, in the order of the catalogue."""
    totals, right = Counter(), Counter()
    for result in results:
        for part in result["parts"]:
            totals[result["exercise"], part["id"]] += 1
            right[result["exercise"], part["id"]] += part["verdict"] == Verdict.PASS
    return [
        {"exercise": e.name, "part": part.name, "right": right[e.name, part.name], "total": totals[e.name, part.name],
         "section": section(e, part)}
        for e in catalogue().values() for part in e.parts if totals[e.name, part.name]
    ]  # fmt: skip


def commonest(results: list[dict]) -> list[dict]:
    """The mistakes of the class by name, most frequent first, with the share of that exercise's submissions."""
    counts = Counter((r["exercise"], p["id"], p["mistake"]) for r in results for p in r["parts"] if p["mistake"])
    handed_in = Counter(result["exercise"] for result in results)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        {
            "exercise": exercise,
            "part": part,
            "name": name,
            "count": count,
            "total": handed_in[exercise],
            "text": next(m.text for m in mistakes_of(catalogue()[exercise].module) if m.name == name),
            "section": section(catalogue()[exercise], catalogue()[exercise].part(part)),
        }
        for (exercise, part, name), count in ranked[:MOST_MISTAKES]
    ]


def likeness(submissions: Iterable[Submission]) -> list[dict]:
    """Pairs of submissions that share what hardly anybody else wrote, exercise by exercise."""
    answers: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for submission in submissions:
        if exercise := catalogue().get(submission.exercise):
            answers[exercise.name][submission.student] = _own_cells(submission, exercise)
    pairs = [
        (name, pair) for name, written in sorted(answers.items()) for pair in alike(written, _known(catalogue()[name]))
    ]
    return [_row(*found) for found in sorted(pairs, key=lambda found: -found[1].share)[:MOST_PAIRS]]


def _row(exercise: str, pair: Pair) -> dict:
    return {"exercise": exercise, "students": (pair.one, pair.other), "share": pair.share, "rare": pair.rare_lines}


def _own_cells(submission: Submission, exercise: Exercise) -> list[str]:
    """The answer cells; in a script, or where the names of the cells are lost, everything."""
    try:
        cells, _ = read(submission, exercise)
    except Broken:
        return []
    return [cell.source for cell in cells if cell.answers] or [cell.source for cell in cells]


def _known(exercise: Exercise) -> list[str]:
    """The code of the notebook as released and as solved by us."""
    paths = (course_root() / folder / exercise.name / f"{exercise.name}.ipynb" for folder in (EXERCISES, SOLUTIONS))
    notebooks = (nbformat.read(path, as_version=4) for path in paths)
    return [cell.source for notebook in notebooks for cell in notebook.cells if cell.cell_type == "code"]


def title(exercise: str) -> dict[str, str]:
    known = catalogue().get(exercise)
    return known.title if known else {"en": exercise, "zh": exercise}
