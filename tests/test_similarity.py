"""Disguised copies are found; code that many students write is not a copy."""

import ast
import random
from pathlib import Path

import pytest

from autograder.catalogue import catalogue, find
from autograder.reports.similarity import alike, lines
from autograder.reports.statistics import _known

STYLES = Path(__file__).parent / "right_answers"
MASKS = find("06_masks")


def styles(exercise) -> dict[str, list[str]]:
    return {path.stem: [path.read_text(encoding="utf-8")] for path in sorted((STYLES / exercise.name).glob("*.py"))}


class Renamed(ast.NodeTransformer):
    """Rename every variable that the code assigns."""

    def __init__(self, tree):
        stored = (n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self.names = {name: f"my_{i}" for i, name in enumerate(dict.fromkeys(stored))}

    def visit_Name(self, node):
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)


def disguised(source: str) -> str:
    """The same code with other names, layout and comments, and without the docstring."""
    tree = ast.parse(source)
    tree.body = tree.body[1:]
    text = ast.unparse(Renamed(tree).visit(tree))
    return "\n".join(f"{line}  # my own idea" if line.endswith(")") else line for line in text.splitlines())


def test_names_layout_comments_and_docstrings_do_not_count():
    one = 'def f(x):\n    """Says."""\n    # why\n    total = torch.sum(x * 2,\n        dim=-1)\n    return total'
    other = "def f(x):\n  t = torch.sum(x*2, dim = -1) # because\n  return t"
    assert lines(one) == lines(other)


def test_another_function_or_argument_makes_a_different_line():
    assert lines("y = torch.sum(x, dim=-1)") != lines("y = torch.mean(x, dim=-1)")
    assert lines("y = torch.sum(x, dim=-1)") != lines("y = torch.sum(x, dim=0)")
    assert lines("y = torch.sum(x, dim=-1)") != lines("y = torch.sum(x, keepdim=-1)")


@pytest.mark.parametrize(
    "broken", ["def f(:\n    return (((", "x = 'never ends\ny = f(x, 1)", "\x00", "  1\n 2\n", "%magic\n!ls"]
)
def test_code_that_cannot_be_parsed_is_compared_as_far_as_possible(broken):
    assert isinstance(lines(broken), tuple)


@pytest.mark.parametrize("exercise", ["05_softmax", "06_masks", "09_multi_head", "16_flash"])
def test_right_answers_in_different_styles_are_not_alike(exercise):
    exercise = find(exercise)
    assert alike(styles(exercise), _known(exercise.name)) == []


@pytest.mark.parametrize("exercise", ["05_softmax", "06_masks", "09_multi_head", "16_flash"])
def test_a_disguised_copy_is_the_only_pair_found(exercise):
    exercise = find(exercise)
    written = styles(exercise)
    victim = random.Random(0).choice(sorted(written))
    (pair,) = alike(written | {"copy": [disguised(written[victim][0])]}, _known(exercise.name))
    assert {pair.one, pair.other} == {victim, "copy"}
    assert pair.share > 0.9


def test_an_answer_that_half_the_class_shares_is_not_a_copy():
    written = styles(MASKS)
    common = next(iter(written.values()))
    same = {f"student{i}": [disguised(common[0])] if i % 2 else common for i in range(len(written))}
    assert alike(written | same, _known(MASKS.name)) == []


def test_the_model_solution_and_the_untouched_notebook_are_not_copies():
    known = _known(MASKS.name)
    assert alike({f"student{i}": known for i in range(2)} | styles(MASKS), known) == []


def test_fewer_than_two_submissions_have_no_pairs():
    assert alike({}, []) == []
    assert alike({"ada": ["x = f(1, 2, 3)"]}, []) == []


def test_one_pair_of_copies_is_found_among_a_thousand():
    pool = [source for [source] in styles(MASKS).values()]
    cut = [
        [ast.get_source_segment(s, node) for node in ast.parse(s).body if isinstance(node, ast.FunctionDef)]
        for s in pool
    ]
    chance = random.Random(1)
    everybody = {f"student{i}": [chance.choice(chance.choice(cut)) for _ in range(5)] for i in range(1000)}
    own = "def f(A, B):\n" + "".join(f"    A = torch.roll(A, {7 * i}) + B.flip({i})\n" for i in range(12))
    pairs = alike(everybody | {"one": [own], "other": [own.replace("A", "state")]}, _known(MASKS.name))
    assert [(pair.one, pair.other) for pair in pairs] == [("one", "other")]


def test_every_exercise_has_code_given_to_everybody():
    for exercise in catalogue().values():
        assert any(lines(source) for source in _known(exercise.name))
