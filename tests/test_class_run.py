"""A whole class through the real grader: every known kind of submission gets the right mark."""

import csv
import json
from pathlib import Path

import pytest

from autograder.catalogue import catalogue
from autograder.checks.samples import (
    as_script,
    hand_in,
    in_as_few_as_possible,
    solution,
    untouched,
    with_answer,
    with_mistakes,
)
from autograder.grading import task
from autograder.grading.grade import Graded
from autograder.grading.run import Options, run
from autograder.mistakes import mistakes_of

EXERCISES = list(catalogue().values())
RIGHT_ANSWERS = Path(__file__).parent / "right_answers"

# What replaces the answer to the last part, and the verdict it must get.
HOSTILE = {
    "loops_forever": ("def {part}(*args, **kwargs):\n    while True:\n        pass", "timeout"),
    "loops_at_the_top": ("while True:\n    pass", "timeout"),
    "takes_100_gib": ("import torch\ndef {part}(*a, **k):\n    return torch.empty(100 * 2**30, dtype=torch.uint8)", "memory"),
    "takes_100_gib_at_the_top": ("import torch\nx = torch.empty(100 * 2**30, dtype=torch.uint8)", "memory"),
    "hoards": ("def {part}(*args, **kwargs):\n    kept = []\n    while True:\n        kept.append(bytearray(2**26))", "memory"),
    "leaves": ("import os\ndef {part}(*args, **kwargs):\n    os._exit(0)", "error"),
    "leaves_at_the_top": ("import os\nos._exit(0)", "error"),
    "cannot_be_parsed": ("def {part}(*args, **kwargs:\n    pass", "error"),
    "raises": ("def {part}(*args, **kwargs):\n    return 1 / 0", "error"),
    "recurses": ("def {part}(*args, **kwargs):\n    return {part}(*args, **kwargs)", "error"),
    "exits": ("import sys\ndef {part}(*args, **kwargs):\n    sys.exit(0)", "error"),
}  # fmt: skip

# Each exercise gets a quarter of them, so that each kind is tried in several exercises.
HOSTILE_IN = {exercise.name: list(HOSTILE)[number % 4 :: 4] for number, exercise in enumerate(EXERCISES)}


@pytest.fixture(scope="module")
def graded(tmp_path_factory, request) -> dict:
    """One run over every exercise that a selected test needs; reports by student and exercise."""
    folder = tmp_path_factory.mktemp("class")
    chosen = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    asked = {spec.params["exercise"].name for spec in chosen if spec and "exercise" in spec.params}
    for exercise in EXERCISES:
        if exercise.name not in asked:
            continue
        right = solution(exercise)
        hand_in(folder / "in", "solution", exercise, right)
        hand_in(folder / "in", "untouched", exercise, untouched(exercise))
        hand_in(folder / "in", "script", exercise, as_script(right))
        for i, mistakes in enumerate(in_as_few_as_possible(mistakes_of(exercise.module))):
            hand_in(folder / "in", f"mistakes {i}", exercise, with_mistakes(exercise, mistakes))
        for name in HOSTILE_IN[exercise.name]:
            source = HOSTILE[name][0].format(part=exercise.parts[-1].name)
            hand_in(folder / "in", f"hostile {name}", exercise, with_answer(right, exercise.parts[-1].name, source))
        for path in (RIGHT_ANSWERS / exercise.name).glob("*.py"):
            hand_in(folder / "in", f"right {path.stem}", exercise, path.read_text(encoding="utf-8"))
    reports = run(
        Options(
            folder / "in",
            folder / "out",
            jobs=2,
            db=f"sqlite:///{folder}/gradebook.db",
            autograded=folder / "autograded",
        )
    )
    return {"folder": folder, "reports": {(r.student, r.exercise): r for r in reports}}


def each_exercise(test):
    return pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)(test)


@each_exercise
@pytest.mark.parametrize("student", ["solution", "script"])
def test_the_model_solution_gets_full_marks(graded, exercise, student):
    report = graded["reports"][student, exercise.name]
    assert (report.score, report.verdict) == (20, "pass")
    assert all((part.told("en"), part.told("zh")) == ("", "") for part in report.parts)


@each_exercise
def test_the_untouched_exercise_gets_nothing(graded, exercise):
    report = graded["reports"]["untouched", exercise.name]
    assert (report.score, report.verdict) == (0, "missing")
    assert {part.verdict for part in report.parts} == {"missing"}


@pytest.mark.parametrize(
    ("exercise", "i", "mistake"),
    [
        (exercise, i, mistake)
        for exercise in EXERCISES
        for i, mistakes in enumerate(in_as_few_as_possible(mistakes_of(exercise.module)))
        for mistake in mistakes
    ],
    ids=lambda thing: getattr(thing, "name", None),
)
def test_every_mistake_loses_points_and_is_named(graded, exercise, i, mistake):
    report = graded["reports"][f"mistakes {i}", exercise.name]
    wrong = next(part for part in report.parts if part.id == mistake.part)
    assert wrong.score < wrong.max_score
    assert wrong.mistake.name == mistake.name
    assert mistake.text.en in wrong.told("en")
    assert mistake.text.zh in wrong.told("zh")


@pytest.mark.parametrize(
    ("exercise", "name"),
    [(exercise, name) for exercise in EXERCISES for name in HOSTILE_IN[exercise.name]],
    ids=lambda thing: getattr(thing, "name", thing),
)
def test_a_hostile_part_gets_its_verdict_and_the_others_keep_their_marks(graded, exercise, name):
    report = graded["reports"][f"hostile {name}", exercise.name]
    *others, last = report.parts
    assert last.verdict == HOSTILE[name][1]
    assert last.score == 0
    assert report.verdict == HOSTILE[name][1]
    assert all(part.verdict == "pass" for part in others)


@each_exercise
def test_right_answers_in_any_style_get_full_marks(graded, exercise):
    styles = [path.stem for path in (RIGHT_ANSWERS / exercise.name).glob("*.py")]
    assert len(styles) >= 5
    for style in styles:
        report = graded["reports"][f"right {style}", exercise.name]
        assert report.verdict == "pass", (style, [part.told("en") for part in report.parts])


def test_all_report_files_agree(graded):
    out, reports = graded["folder"] / "out", graded["reports"]
    written = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert written["schema"] == 1
    assert written["submissions"] == [report.public() for report in reports.values()]
    with open(out / "grades.csv", encoding="utf-8") as file:
        rows = {(row["student"], row["exercise"]): float(row["score"]) for row in csv.DictReader(file)}
    assert rows == {key: report.score for key, report in reports.items()}
    assert (out / "class.html").read_text(encoding="utf-8").count("<tr>") > len(reports)
    for student, exercise in reports:
        assert (out / student / f"{exercise}.html").is_file()
        one = json.loads((out / "gradescope" / student / exercise / "results.json").read_text(encoding="utf-8"))
        assert one["score"] == reports[student, exercise].score
    assert (out / "junit.xml").stat().st_size > 0


def test_nothing_is_graded_where_the_model_solution_fails(graded, tmp_path, monkeypatch):
    def failing(*about):
        return Graded(graded["reports"]["untouched", "06_masks"])

    monkeypatch.setattr(task, "grade_file", failing)
    hand_in(tmp_path / "in", "somebody", EXERCISES[0], untouched(EXERCISES[0]))
    with pytest.raises(task.UnsoundGrader, match="nothing was graded"):
        run(Options(tmp_path / "in", tmp_path / "out", db=f"sqlite:///{tmp_path}/gradebook.db"))
    assert not (tmp_path / "out" / "results.json").exists()


def test_a_second_run_grades_nothing(graded):
    folder, seen = graded["folder"], []
    again = run(
        Options(
            folder / "in",
            folder / "out",
            db=f"sqlite:///{folder}/gradebook.db",
            autograded=folder / "autograded",
        ),
        lambda report, total: seen.append(report),
    )
    assert {(r.student, r.exercise): r for r in again} == graded["reports"]  # seconds too: nothing was run
    assert len(seen) == len(again)
