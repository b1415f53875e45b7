"""A submission that cannot be read costs only its own marks."""

import json
import os

import nbformat
import pytest

from autograder.catalogue import find
from autograder.checks.samples import hand_in, solution, with_answer
from autograder.grading.run import Options, run

MASKS = find("06_masks")


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict:
    """One run over every kind of bad input; reports by student, the folder and the odd names beside them."""
    folder = tmp_path_factory.mktemp("bad")
    into = folder / "in"

    def file(student, content: bytes, exercise="06_masks"):
        place = into / student / exercise
        place.mkdir(parents=True)
        (place / f"{exercise}.ipynb").write_bytes(content)

    right = solution(MASKS)
    text = nbformat.writes(right).encode()
    hand_in(into, "control", MASKS, right)
    file("truncated", text[: len(text) // 2])
    file("empty", b"")
    file("not json", b"hello")
    file("not a notebook", b"[1, 2, 3]")
    file("no cells", b"{}")
    file("not utf-8", b"\xff\xfe" + text)
    file("nested", b"[" * 200_000)
    file("huge", b" " * (9 * 2**20))
    file("half a character", text.replace(b"Masks", rb"\ud800"))
    file("too many cells", json.dumps(json.loads(text) | {"cells": [json.loads(text)["cells"][1]] * 5000}).encode())
    file("a cell of no kind", text.replace(b'"cell_type": "code"', b'"cell_type": null'))
    file("unknown", text, "99_nothing")
    (into / "nothing" / "06_masks").mkdir(parents=True)
    (into / "folder" / "06_masks" / "06_masks.ipynb").mkdir(parents=True)
    place = into / "pipe" / "06_masks"
    place.mkdir(parents=True)
    os.mkfifo(place / "06_masks.ipynb")
    place = into / "link" / "06_masks"
    place.mkdir(parents=True)
    (place / "06_masks.ipynb").symlink_to(into / "control" / "06_masks" / "06_masks.ipynb")
    no_answers = nbformat.v4.new_notebook(cells=[c for c in right.cells if not c.get("id", "").startswith("answer")])
    hand_in(into, "no answer cells", MASKS, no_answers)
    plain = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(c.source) for c in right.cells if c.cell_type == "code"]
    )
    hand_in(into, "no metadata", MASKS, plain)
    hand_in(into, "one part untouched", MASKS, with_answer(right, "causal_mask", UNTOUCHED))
    hand_in(into, "syntax error", MASKS, with_answer(right, "causal_mask", "def causal_mask(:"))
    hand_in(into, "shell", MASKS, with_answer(right, "causal_mask", SHELL + answer(right, "causal_mask")))
    hand_in(into, "in the check cell", MASKS, in_the_check_cell(right, "causal_mask"))
    old = json.loads(text)
    old["nbformat"], old["nbformat_minor"] = 4, 0
    for cell in old["cells"]:
        del cell["id"]
    file("an older format", json.dumps(old).encode())
    names = "<b>bold", "=cmd()", "名字 😀", "a\nb"
    for name in names:
        hand_in(into, name, MASKS, right)
    graded = run(Options(into, folder / "out", db=f"sqlite:///{folder}/gradebook.db", autograded=folder / "autograded"))
    found = {report.student: report for report in graded}
    found["out"] = folder / "out"
    found["names"] = names
    return found


UNTOUCHED = "def causal_mask(q_len, k_len=None):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
SHELL = "!pip install nothing\n%matplotlib inline\n%time x = 1\nfiles = !ls\nfrom IPython.display import display\ndisplay(1)\n"


def answer(notebook, part):
    return next(c.source for c in notebook.cells if c.get("id") == f"answer-{part}")


def test_a_right_submission_among_them_gets_full_marks(reports):
    assert reports["control"].score == 20


@pytest.mark.parametrize(
    ("student", "verdict", "said"),
    [
        ("truncated", "error", "damaged"),
        ("empty", "error", "damaged"),
        ("not json", "error", "damaged"),
        ("not a notebook", "error", "damaged"),
        ("no cells", "error", "damaged"),
        ("not utf-8", "error", "UTF-8"),
        ("nested", "error", "damaged"),
        ("huge", "error", "9 MB"),
        ("half a character", "error", "damaged"),
        ("too many cells", "error", "5000 cells"),
        ("a cell of no kind", "error", "damaged"),
        ("nothing", "missing", "no notebook"),
        ("folder", "error", "not an ordinary file"),
        ("pipe", "error", "not an ordinary file"),
        ("link", "error", "cannot be opened"),
    ],
)
def test_an_unreadable_submission_gets_a_verdict_with_the_reason(reports, student, verdict, said):
    report = reports[student]
    assert (report.score, report.max_score, report.verdict) == (0, 20, verdict)
    assert {part.verdict for part in report.parts} == {verdict}
    assert said in report.message.en
    assert report.message.zh


def test_an_unknown_exercise_lists_the_known_ones(reports):
    report = reports["unknown"]
    assert report.verdict == "missing"
    assert "06_masks" in report.message.en


def in_the_check_cell(notebook, part):
    """The answer written below the cell it belongs in."""
    changed = with_answer(notebook, part, UNTOUCHED)
    check = next(cell for cell in changed.cells if cell.get("id") == f"check-{part}")
    check.source = answer(notebook, part) + "\n\n" + check.source
    return changed


def test_an_answer_in_the_check_cell_counts(reports):
    assert reports["in the check cell"].score == 20


def test_a_notebook_without_answer_cells_has_missing_parts(reports):
    assert reports["no answer cells"].verdict == "missing"
    assert "not defined" in reports["no answer cells"].parts[0].message.en


def test_right_code_without_cell_metadata_gets_full_marks(reports):
    assert reports["no metadata"].score == 20


@pytest.mark.parametrize(("student", "verdict"), [("one part untouched", "missing"), ("syntax error", "error")])
def test_a_fault_in_one_part_costs_that_part_alone(reports, student, verdict):
    first, *others = reports[student].parts
    assert (first.verdict, first.score) == (verdict, 0)
    assert {part.verdict for part in others} == {"pass"}


def test_a_syntax_error_is_shown_with_its_cell_and_line(reports):
    assert "SyntaxError: invalid syntax (cell 2, line 1)" in reports["syntax error"].parts[0].message.en


def test_magics_and_shell_commands_do_no_harm(reports):
    assert reports["shell"].score == 20


def test_an_older_notebook_format_is_read(reports):
    assert reports["an older format"].score == 20


def test_odd_names_are_graded_and_shown_as_text(reports):
    for name in reports["names"]:
        assert reports[name].score == 20
    page = (reports["out"] / "class.html").read_text(encoding="utf-8")
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in page
    assert "'=cmd()" in (reports["out"] / "grades.csv").read_text(encoding="utf-8")
