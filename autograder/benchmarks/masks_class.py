"""The submissions of `06_masks` that every benchmark grades, and the plain asserts that other graders run on them."""

from pathlib import Path

import nbformat

from autograder.catalogue import Exercise, find
from autograder.checks.samples import hand_in, solution, with_answer, with_mistake
from autograder.intake.submission import check_cell, grade_id
from autograder.mistakes import mistakes_of

# One line per statement, so that nbgrader's cells, otter's doctests and the floor can use the same asserts.
ASSERTS = {
    "causal_mask": [
        "import torch",
        "assert torch.equal(causal_mask(3), torch.ones(3, 3).tril().bool())",
        "assert torch.equal(causal_mask(2, 4), torch.ones(2, 4).tril(2).bool())",
    ],
    "padding_mask": [
        "import torch",
        "assert padding_mask(torch.tensor([1, 3]), 3).tolist() == [[[[True, False, False]]], [[[True, True, True]]]]",
    ],
    "to_additive": [
        "import torch",
        "assert torch.equal(to_additive(torch.tensor([True, False])), torch.tensor([0.0, -torch.inf]))",
    ],
    "adapt_mask": [
        "import torch",
        "given = torch.tensor([[True, False]])",
        "assert torch.equal(adapt_mask(given, 'nn_mha_bool'), ~given)",
        "assert torch.equal(adapt_mask(given, 'key_padding'), ~given[:, None, None, :])",
    ],
    "masked_attention": [
        "import torch",
        "q, k, v = torch.randn(3, 2, 5, 4, generator=torch.Generator().manual_seed(0))",
        "mask = torch.ones(5, 5).tril().bool()",
        "out, weights = masked_attention(q, k, v, mask)",
        "expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
        "assert torch.allclose(out, expected, atol=1e-5)",
    ],
}
BROKEN = (
    "def masked_attention(q, k, v, mask:\n    return q",
    "def masked_attention(q, k, v, mask):\n    while True:\n        pass",
    "def masked_attention(q, k, v, mask):\n    return q @ k",
    "def masked_attention(q, k, v, mask):\n    raise NotImplementedError()",
)


def exercise() -> Exercise:
    return find("06_masks")


def right_and_wrong(folder: Path, number: int) -> None:
    """Half of them right, half with one known mistake."""
    known = mistakes_of(exercise().module)
    for i in range(number):
        work = with_mistake(exercise(), known[i // 2 % len(known)]) if i % 2 else solution(exercise())
        hand_in(folder, f"student{i:04}", exercise(), work)


def broken(folder: Path, number: int) -> None:
    """Submissions that cannot be parsed, never end, raise an error, or are not written."""
    for i in range(number):
        hand_in(
            folder, f"broken{i:04}", exercise(), with_answer(solution(exercise()), "masked_attention", BROKEN[i % 4])
        )


def with_asserts(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook for a stock grader: plain asserts instead of our check cells."""
    for cell in notebook.cells:
        for part, lines in ASSERTS.items():
            if grade_id(cell) == check_cell(part):
                cell.source = "\n".join(lines)
    return notebook


def without_checks(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The answers alone."""
    checks = {check_cell(part) for part in ASSERTS}
    notebook.cells = [cell for cell in notebook.cells if grade_id(cell) not in checks]
    return notebook
