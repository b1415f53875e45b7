"""The exercise `06_masks` for stock nbgrader: answers and locked cells of assertions in one notebook."""

import contextlib
import re
import sqlite3
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from autograder.catalogue import find

MASKS = find("06_masks")
CELLS = re.compile(r"^# ?%%.*$", re.MULTILINE)
CONFIG = "c = get_config()\nc.CourseDirectory.course_id = 'stock'\nc.ExecutePreprocessor.timeout = 15\nc.Execute.timeout = 15\n"

# What a careful instructor would write. nbgrader puts the hidden tests back when it grades.
ASSERTIONS = {
    "causal_mask": """
expected = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=torch.bool)
assert torch.equal(causal_mask(3), expected)
### BEGIN HIDDEN TESTS
expected = torch.ones(2, 5, dtype=torch.bool).tril(3)
assert torch.equal(causal_mask(2, 5), expected)
expected = torch.ones(4, 2, dtype=torch.bool).tril(-2)
assert torch.equal(causal_mask(4, k_len=2), expected)
### END HIDDEN TESTS
""",
    "padding_mask": """
expected = torch.tensor([[[[1, 1, 0, 0]]], [[[1, 0, 0, 0]]]], dtype=torch.bool)
assert torch.equal(padding_mask(torch.tensor([2, 1]), 4), expected)
### BEGIN HIDDEN TESTS
lengths = torch.tensor([0, 3], dtype=torch.int32)
expected = (torch.arange(3) < torch.tensor([0, 3])[:, None])[:, None, None]
assert torch.equal(padding_mask(lengths, 3), expected)
assert torch.equal(lengths, torch.tensor([0, 3], dtype=torch.int32))
### END HIDDEN TESTS
""",
    "to_additive": """
mask = torch.tensor([[True, False], [False, True]])
expected = torch.tensor([[0.0, -torch.inf], [-torch.inf, 0.0]])
assert torch.equal(to_additive(mask), expected)
### BEGIN HIDDEN TESTS
assert to_additive(mask, torch.float64).dtype == torch.float64
### END HIDDEN TESTS
""",
    "adapt_mask": """
mask = torch.tensor([[True, False, True], [False, True, True]])
assert torch.equal(adapt_mask(mask, "nn_mha_bool"), ~mask)
assert torch.equal(adapt_mask(mask, "sdpa_bool"), mask)
### BEGIN HIDDEN TESTS
assert torch.equal(adapt_mask(mask.long(), "keep_01"), mask)
assert torch.equal(adapt_mask(torch.zeros(2, 3).masked_fill(~mask, -torch.inf), "additive"), mask)
assert torch.equal(adapt_mask(mask, "key_padding"), ~mask[:, None, None])
try:
    adapt_mask(mask, "padding")
    assert False, "an unknown source must raise ValueError"
except ValueError:
    pass
assert torch.equal(mask, torch.tensor([[True, False, True], [False, True, True]]))
### END HIDDEN TESTS
""",
    "masked_attention": """
torch.manual_seed(0)
q, k, v = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)
mask = torch.rand(2, 3, 5) < 0.6
mask[..., 0] = True
expected = torch.softmax((q @ k.mT / 2).masked_fill(~mask, -torch.inf), -1)
out, weights = masked_attention(q, k, v, mask)
assert torch.allclose(weights, expected, atol=1e-5)
assert torch.allclose(out, expected @ v, atol=1e-5)
### BEGIN HIDDEN TESTS
mask[1, 2] = False
out, weights = masked_attention(q, k, v, mask)
assert torch.allclose(out[1, 2], torch.zeros(6)) and torch.allclose(weights[1, 2], torch.zeros(5))
### END HIDDEN TESTS
""",
}


def assignment(answers: dict[str, str]):
    """The instructor's notebook with these answers."""
    cells = [_cell("setup", "import math\n\nimport torch", locked=True)]
    for part in MASKS.parts:
        cells.append(_cell(f"answer-{part.name}", answers[part.name], solution=True))
        cells.append(_cell(f"check-{part.name}", ASSERTIONS[part.name].strip(), locked=True, points=part.points))
    return new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "", "language": "python"}}
    )


def _cell(name: str, source: str, locked=False, solution=False, points=None):
    about = {
        "grade_id": name,
        "locked": locked,
        "solution": solution,
        "grade": points is not None,
        "schema_version": 3,
        "task": False,
    }
    if points is not None:
        about["points"] = points
    return new_code_cell(source, metadata={"nbgrader": about}, id=name)


def with_program(released, source: str):
    """The released notebook as a student hands it in: the program in place of the answers."""
    pieces = [piece for piece in CELLS.split(source) if piece.strip()]
    cells = []
    for cell in released.cells:
        if cell.id.startswith("answer-"):
            cell.source = pieces.pop(0) if pieces and cell.id == "answer-causal_mask" else "pass"
            cells.append(cell)
            if cell.id == "answer-causal_mask":
                cells += [new_code_cell(piece) for piece in pieces]
        else:
            cells.append(cell)
    return nbformat.from_dict({**released, "cells": cells})


def scores(gradebook: Path) -> dict[str, dict[str, float]]:
    """The marks in nbgrader's gradebook, by student and part, as its own pages show them."""
    query = """
        SELECT sa.student_id, bc.name, coalesce(g.manual_score, g.auto_score, 0)
        FROM grade g JOIN base_cell bc ON g.cell_id = bc.id
        JOIN submitted_notebook sn ON g.notebook_id = sn.id
        JOIN submitted_assignment sa ON sn.assignment_id = sa.id
    """
    found: dict[str, dict[str, float]] = {}
    with contextlib.suppress(sqlite3.Error), sqlite3.connect(gradebook) as book:
        for student, name, score in book.execute(query):
            found.setdefault(student, {})[name.removeprefix("check-")] = score
    return found
