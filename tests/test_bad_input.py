"""Bad input costs the one who handed it in, and nobody else; nothing is lost."""

import json
import os

import nbformat
import pytest

from autograder.catalogue import find
from autograder.checks.samples import hand_in, solution, with_answer
from autograder.grading.run import Options, run

MASKS = find("06_masks")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict:
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
    found = {result["student"]: result for result in graded}
    found["out"] = folder / "out"
    found["names"] = names
    return found


UNTOUCHED = "def causal_mask(q_len, k_len=None):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
SHELL = "!pip install nothing\n%matplotlib inline\n%time x = 1\nfiles = !ls\nfrom IPython.display import display\ndisplay(1)\n"


def answer(notebook, part):
    return next(c.source for c in notebook.cells if c.get("id") == f"answer-{part}")


def test_the_control_between_them_gets_full_marks(results):
    assert results["control"]["score"] == 20


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
def test_what_cannot_be_read_gets_a_verdict_that_says_why(results, student, verdict, said):
    result = results[student]
    assert (result["score"], result["max_score"], result["verdict"]) == (0, 20, verdict)
    assert {part["verdict"] for part in result["parts"]} == {verdict}
    assert said in result["message"]["en"]
    assert result["message"]["zh"]


def test_an_unknown_exercise_is_told_what_there_is(results):
    result = results["unknown"]
    assert result["verdict"] == "missing"
    assert "06_masks" in result["message"]["en"]


def in_the_check_cell(notebook, part):
    """The answer written below the cell it belongs in."""
    changed = with_answer(notebook, part, UNTOUCHED)
    check = next(cell for cell in changed.cells if cell.get("id") == f"check-{part}")
    check.source = answer(notebook, part) + "\n\n" + check.source
    return changed


def test_an_answer_in_the_cell_that_checks_it_counts(results):
    assert results["in the check cell"]["score"] == 20


def test_a_notebook_without_answer_cells_is_missing_its_parts(results):
    assert results["no answer cells"]["verdict"] == "missing"
    assert "not defined" in results["no answer cells"]["parts"][0]["message"]["en"]


def test_right_code_in_cells_that_lost_their_names_gets_full_marks(results):
    assert results["no metadata"]["score"] == 20


@pytest.mark.parametrize(("student", "verdict"), [("one part untouched", "missing"), ("syntax error", "error")])
def test_a_fault_in_one_part_costs_that_part_alone(results, student, verdict):
    first, *others = results[student]["parts"]
    assert (first["verdict"], first["score"]) == (verdict, 0)
    assert {part["verdict"] for part in others} == {"pass"}


def test_a_syntax_error_is_shown_with_its_cell_and_line(results):
    assert "SyntaxError: invalid syntax (cell 2, line 1)" in results["syntax error"]["parts"][0]["message"]["en"]


def test_magics_and_shell_commands_do_no_harm(results):
    assert results["shell"]["score"] == 20


def test_an_older_notebook_format_is_read(results):
    assert results["an older format"]["score"] == 20


def test_odd_names_are_graded_and_shown_as_text(results):
    for name in results["names"]:
        assert results[name]["score"] == 20
    page = (results["out"] / "class.html").read_text(encoding="utf-8")
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in page
    assert "'=cmd()" in (results["out"] / "grades.csv").read_text(encoding="utf-8")
