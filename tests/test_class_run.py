"""A whole class through the real grader: every known kind of submission gets the mark it deserves."""

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
from autograder.grading import task as work
from autograder.grading.grade import Graded
from autograder.grading.run import Options, run
from autograder.mistakes import mistakes_of

EXERCISES = list(catalogue().values())
RIGHT_ANSWERS = Path(__file__).parent / "right_answers"

# What is put in place of the last part's answer, and the verdict it must get.
HOSTILE = {
    "loops_for_ever": ("def {part}(*args, **kwargs):\n    while True:\n        pass", "timeout"),
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

# A fourth of them in each exercise, so that each kind meets several exercises.
HOSTILE_IN = {exercise.name: list(HOSTILE)[number % 4 :: 4] for number, exercise in enumerate(EXERCISES)}


@pytest.fixture(scope="module")
def graded(tmp_path_factory, request) -> dict:
    """One run over every exercise that a chosen test asks for; results by student and exercise."""
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
    results = run(
        Options(
            folder / "in",
            folder / "out",
            jobs=2,
            db=f"sqlite:///{folder}/gradebook.db",
            autograded=folder / "autograded",
        )
    )
    return {"folder": folder, "results": {(r["student"], r["exercise"]): r for r in results}}


def each_exercise(test):
    return pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)(test)


@each_exercise
@pytest.mark.parametrize("student", ["solution", "script"])
def test_the_model_solution_gets_full_marks(graded, exercise, student):
    result = graded["results"][student, exercise.name]
    assert (result["score"], result["verdict"]) == (20, "pass")
    assert all(part["message"] == {"en": "", "zh": ""} for part in result["parts"])


@each_exercise
def test_the_untouched_exercise_gets_nothing(graded, exercise):
    result = graded["results"]["untouched", exercise.name]
    assert (result["score"], result["verdict"]) == (0, "missing")
    assert {part["verdict"] for part in result["parts"]} == {"missing"}


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
    result = graded["results"][f"mistakes {i}", exercise.name]
    wrong = next(part for part in result["parts"] if part["id"] == mistake.part)
    assert wrong["score"] < wrong["max_score"]
    assert wrong["mistake"] == mistake.name
    assert mistake.text["en"] in wrong["message"]["en"]
    assert mistake.text["zh"] in wrong["message"]["zh"]


@pytest.mark.parametrize(
    ("exercise", "name"),
    [(exercise, name) for exercise in EXERCISES for name in HOSTILE_IN[exercise.name]],
    ids=lambda thing: getattr(thing, "name", thing),
)
def test_a_hostile_part_gets_its_verdict_and_costs_only_itself(graded, exercise, name):
    result = graded["results"][f"hostile {name}", exercise.name]
    *others, last = result["parts"]
    assert last["verdict"] == HOSTILE[name][1]
    assert last["score"] == 0
    assert result["verdict"] == HOSTILE[name][1]
    assert all(part["verdict"] == "pass" for part in others)


@each_exercise
def test_right_answers_in_any_style_get_full_marks(graded, exercise):
    styles = [path.stem for path in (RIGHT_ANSWERS / exercise.name).glob("*.py")]
    assert len(styles) >= 5
    for style in styles:
        result = graded["results"][f"right {style}", exercise.name]
        assert result["verdict"] == "pass", (style, [part["message"]["en"] for part in result["parts"]])


def test_every_report_is_written_and_agrees(graded):
    out, results = graded["folder"] / "out", graded["results"]
    written = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert written["schema"] == 1
    assert {(r["student"], r["exercise"]): r for r in written["submissions"]} == results
    with open(out / "grades.csv", encoding="utf-8") as file:
        rows = {(row["student"], row["exercise"]): float(row["score"]) for row in csv.DictReader(file)}
    assert rows == {key: result["score"] for key, result in results.items()}
    assert (out / "class.html").read_text(encoding="utf-8").count("<tr>") > len(results)
    for student, exercise in results:
        assert (out / student / f"{exercise}.html").is_file()
        one = json.loads((out / "gradescope" / student / exercise / "results.json").read_text(encoding="utf-8"))
        assert one["score"] == results[student, exercise]["score"]
    assert (out / "junit.xml").stat().st_size > 0


def test_a_machine_that_fails_the_model_solution_judges_nobody(graded, tmp_path, monkeypatch):
    def failing(*about):
        return Graded(graded["results"]["untouched", "06_masks"])

    monkeypatch.setattr(work, "grade", failing)
    hand_in(tmp_path / "in", "somebody", EXERCISES[0], untouched(EXERCISES[0]))
    with pytest.raises(work.UnsoundGrader, match="nothing was graded"):
        run(Options(tmp_path / "in", tmp_path / "out", db=f"sqlite:///{tmp_path}/gradebook.db"))
    assert not (tmp_path / "out" / "results.json").exists()


def test_a_second_run_grades_nothing_again(graded):
    folder, seen = graded["folder"], []
    again = run(
        Options(
            folder / "in",
            folder / "out",
            db=f"sqlite:///{folder}/gradebook.db",
            autograded=folder / "autograded",
        ),
        lambda result, total: seen.append(result),
    )
    assert {(r["student"], r["exercise"]): r for r in again} == graded["results"]  # seconds too: nothing was run
    assert len(seen) == len(again)
