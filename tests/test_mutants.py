"""Mutants of right answers: each operator changes what it says, and a mutant that survives is reported."""

import ast
import importlib
import json
import types
from dataclasses import replace

import pytest

from autograder.catalogue import find
from autograder.checks import mutants
from autograder.checks.mutant_runs import Runner
from autograder.checks.mutant_sources import Mutant, Source, mutants_of, sources
from autograder.checks.mutants import Result, Sample, examine_mutants, key_of
from autograder.checks.mutation import OPERATORS, Mutation, mutations
from autograder.cli import main
from autograder.exam.examiner import Examination, examination
from autograder.intake.submission import Cell

MASKS = find("06_masks")
UNASKED = "test_an_unknown_source_is_refused"
EXAMPLES = [
    ("arithmetic swapped", "return x + y", "return x - y"),
    ("arithmetic swapped", "return x // y", "return x / y"),
    ("arithmetic swapped", "x *= y", "x /= y"),
    ("operand removed", "return x + y", "return y"),
    ("comparison changed", "return x < y", "return x <= y"),
    ("comparison changed", "return x is None", "return x is not None"),
    ("and or swapped", "return x and y", "return x or y"),
    ("sign removed", "return -x", "return x"),
    ("sign removed", "return ~x", "return x"),
    ("condition negated", "return [i for i in x if i]", "return [i for i in x if not i]"),
    ("condition forced", "if x:\n        return y", "if True:"),
    ("condition forced", "if x:\n        return y", "if False:"),
    ("one side only", "return x if y else z", "return z"),
    ("constant changed", "return x[2]", "return x[1]"),
    ("constant changed", "return x[0]", "return x[1]"),
    ("constant changed", "return 0.0 * x", "return 0.1 * x"),
    ("constant changed", "return x(True)", "return x(False)"),
    ("negative constant changed", "return x.sum(-1)", "return x.sum(-2)"),
    ("negative constant changed", "return x.sum(-1)", "return x.sum(0)"),
    ("default changed", "return z", "def f(x, y, z=0, n=2):"),
    ("statement deleted", "x = y\n    return x", "pass"),
    ("error changed", "raise ValueError('no')", "pass"),
    ("error changed", "raise ValueError('no')", "raise TypeError('no')"),
    ("keyword dropped", "return x.sum(0, keepdim=True)", "return x.sum(0)"),
    ("arguments swapped", "return torch.cat(x, y)", "return torch.cat(y, x)"),
    ("method skipped", "return x.abs()", "return x"),
    ("call skipped", "return torch.where(x, y, z)", "return y"),
    ("axis changed", "return x.sum(dim=n)", "return x.sum(dim=-1)"),
    ("transpose removed", "return x.mT @ y", "return x @ y"),
    ("slice shifted", "return x[:n]", "return x[:n + 1]"),
    ("slice shifted", "return x[:n]", "return x[1:n]"),
    ("index changed", "return x[:, None]", "return x[:]"),
    ("index changed", "return x[n]", "return x[n - 1]"),
    ("square root changed", "return x / n ** 0.5", "return x / wrong.isqrt(n)"),
    ("square root changed", "return x * n ** -0.5", "return x * (1 / (n / 2))"),
    ("square root changed", "return x / math.sqrt(n)", "return x / 2.0"),
    ("infinity made finite", "return x.masked_fill(y, -torch.inf)", "return x.masked_fill(y, -10000.0)"),
    ("infinity made finite", "return x.masked_fill(y, -torch.inf)", "return x.masked_fill(y, torch.finfo(x.dtype).min)"),
    ("softmax changed", "return torch.softmax(x, dim=-1)", "return wrong.softmax_without_shift(x, dim=-1)"),
    ("softmax changed", "return x.softmax(-1)", "return wrong.softmax_without_zeros(x, -1)"),
    ("shift removed", "return torch.exp(x - y)", "return torch.exp(x)"),
    ("shift removed", "return (x - y).exp()", "return x.exp()"),
    ("falsy taken for none", "return y if z is None else z", "return z or y"),
    ("falsy filled in", "if z is None:\n        z = y", "if not z:"),
    ("option wrong", "return n", "def f(x, y, z=None, n=2):\n    n = 2"),
    ("option wrong", "return n", "def f(x, y, z=None, n=2):\n    n = n or 2"),
    ("argument rounded", "return x", "def f(x, y, z=None, n=2):\n    x = wrong.rounded(x)"),
    ("argument cut", "return x", "def f(x, y, z=None, n=2):\n    y = wrong.cut(y)"),
    ("argument cut in a branch", "if n:\n        x = 2 * x", "if n:\n    x = wrong.cut(x)"),
    ("argument cut in a branch", "if n:\n        x = 2 * x", "    x = 2 * x\nelse:\n    x = wrong.cut(x)"),
    ("layer cut", "y = self.layer(x)", "y = wrong.cut(self.layer(x))"),
    ("result changed", "return (x, y)", "return (x, y.squeeze())"),
    ("result changed", "return x", "return wrong.cut(x)"),
    ("argument changed in place", "return x + y", "return wrong.after_changing(x, x + y)"),
    ("made in place", "x = x + y", "x += y"),
    ("made in place", "x = x.masked_fill(y, 0)", "x = x.masked_fill_(y, 0)"),
    ("remembered by shape", "return x", "@wrong.remembered_by_shape\ndef f(x, y, z=None, n=2):"),
    ("view in place of reshape", "return x.reshape(-1)", "return x.view(-1)"),
]  # fmt: skip


def mutated(body: str) -> list[Mutation]:
    tree = ast.parse(f'def f(x, y, z=None, n=2):\n    """About f."""\n    {body}\n')
    return list(mutations(tree.body[0], {"f"}, frozenset({"torch", "math"})))


@pytest.mark.parametrize(("operator", "body", "after"), EXAMPLES)
def test_an_operator_changes_what_it_says(operator, body, after):
    assert after in [mutation.after for mutation in mutated(body) if mutation.operator == operator]


def test_every_operator_is_explained_and_has_an_example():
    assert {operator for operator, _, _ in EXAMPLES} == set(OPERATORS)
    assert all(function.__doc__ for _, function in OPERATORS.values())


def test_a_mutation_knows_its_line_and_what_it_changed():
    (found,) = [mutation for mutation in mutated("x = 2 * x\n    return x < y") if mutation.after == "return x <= y"]
    assert (found.operator, found.where, found.line, found.before) == ("comparison changed", "f", 4, "return x < y")


@pytest.mark.parametrize("body", ["x = y + 0.5\n    return x", "if x is None:\n        return -1\n    return x[:, 1:]"])
def test_no_two_mutations_are_the_same_and_none_is_the_original(body):
    texts = [mutation.text for mutation in mutated(body)]
    assert len(set(texts)) == len(texts)
    assert ast.unparse(ast.parse(f"def f(x, y, z=None, n=2):\n    {body}")) not in texts


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("'Only a text.'", []),
        ("import math", []),
        ("assert x > 2", []),
        ("raise ValueError(f'{x + 2}')", ["pass", "raise TypeError(f'{x + 2}')"]),
        ("return x.to(device=x.device)", ["return x"]),
    ],
)
def test_what_no_question_can_see_is_not_changed(body, after):
    tree = ast.parse(f"def f(x: 2):\n    {body}")
    assert [mutation.after for mutation in mutations(tree.body[0], (), frozenset())] == after


def test_a_function_is_changed_as_a_whole_in_the_first_answer_only():
    found = mutants_of(MASKS, sources(MASKS))
    assert {m.source.name for m in found if m.mutation.operator == "remembered by shape"} == {"06_masks.ipynb"}
    assert len({m.source.name for m in found}) > 5


def test_the_same_sources_give_the_same_mutants_in_the_same_order():
    first, second = (mutants_of(MASKS, sources(MASKS)) for _ in range(2))
    assert first == second


HELPED = """
import torch

def helper(x):
    return x + 1

def causal_mask(n):
    return helper(n)

def padding_mask(n):
    return causal_mask(n)

def nobody_calls_this(n):
    return n + 1
"""


def test_a_helper_affects_every_part_that_calls_it_and_an_answer_its_own_part():
    found = mutants_of(MASKS, [Source("helped.py", (Cell(HELPED, "cell 1"),))])
    assert {(mutant.mutation.where, mutant.parts) for mutant in found} == {
        ("helper", ("causal_mask", "padding_mask")),
        ("causal_mask", ("causal_mask",)),
        ("padding_mask", ("padding_mask",)),
    }


@pytest.fixture
def weak(monkeypatch, tmp_path):
    """A suite without one promise, only the mutants that it kept out, and a folder for the list of equivalent ones."""
    suite = types.ModuleType("weak")
    strong = importlib.import_module("autograder.suites.test_06_masks")
    vars(suite).update({name: value for name, value in vars(strong).items() if name != UNASKED})
    monkeypatch.setattr(mutants, "examination", lambda exercise: Examination(exercise, suite))
    monkeypatch.setattr(mutants, "sources", lambda exercise: sources(exercise)[:1])
    monkeypatch.setattr(mutants, "mutants_of", lambda *about: [m for m in mutants_of(*about) if chosen(m)])
    monkeypatch.setattr(mutants, "FOLDER", tmp_path)
    write_list(tmp_path, [])
    return tmp_path


def chosen(mutant: Mutant) -> bool:
    mutation = mutant.mutation
    return mutation.operator == "error changed" or (mutation.where, mutation.before) == ("adapt_mask", "return ~mask")


def write_list(folder, keys, reason="They do the same."):
    entries = [zip((*mutants.KEYS, "reason"), (*key, reason), strict=True) for key in keys]
    text = "\n".join("[[equivalent]]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in entry) for entry in entries)
    (folder / "06_masks.toml").write_text(text, encoding="utf-8")


def test_a_mutant_that_keeps_every_promise_is_reported_with_its_line(weak):
    result = examine_mutants(MASKS)
    assert [mutant.mutation.after for mutant in result.survivors] == [
        "pass",
        "raise TypeError(f'unknown source {source!r}')",
    ]
    assert result.counts()["killed"] > 0
    assert result.faults[0] == (
        "06_masks.ipynb, cell 8, line 17, adapt_mask: error changed: raise ValueError(f'unknown source {source!r}') -> pass "
        "keeps every promise of adapt_mask"
    )


def test_the_whole_suite_kills_it(weak, monkeypatch):
    monkeypatch.setattr(mutants, "examination", examination)
    assert examine_mutants(MASKS).faults == []


def test_a_listed_survivor_is_no_fault(weak):
    write_list(weak, [key_of(mutant) for mutant in examine_mutants(MASKS).survivors])
    result = examine_mutants(MASKS)
    assert result.faults == []
    assert (len(result.equivalent), len(result.survivors)) == (2, 0)


def test_an_entry_that_silences_nothing_is_a_fault(weak):
    known = mutants_of(MASKS, sources(MASKS)[:1])
    killed = next(key_of(mutant) for mutant in known if mutant.mutation.before == "return ~mask")
    write_list(weak, [killed, ("gone.py", *killed[1:])])
    stale = [fault for fault in examine_mutants(MASKS).faults if "stale" in fault]
    assert len(stale) == 2
    assert "this mutant is killed: 06_masks.ipynb, adapt_mask" in stale[0]
    assert "this mutant is not generated any more: gone.py, adapt_mask" in stale[1]


def test_an_entry_needs_a_reason(weak):
    write_list(weak, [("06_masks.ipynb", "adapt_mask", "error changed", "x", "y")], reason=" ")
    with pytest.raises(LookupError, match="reason"):
        examine_mutants(MASKS)


def test_a_right_answer_that_fails_is_a_fault_and_not_mutated(weak, monkeypatch):
    monkeypatch.setattr(mutants, "sources", lambda exercise: [Source("empty.py", (Cell("x = 1", "cell 1"),))])
    result = examine_mutants(MASKS)
    assert result.counts()["generated"] == 0
    assert "empty.py: a right answer is rejected" in result.faults[0]


@pytest.mark.parametrize(
    ("body", "killed_by"),
    [
        ("while True: pass", "timeout"),
        ("import os; os.kill(os.getpid(), 9)", "crash"),
        ("raise MemoryError", "test_a_square_causal_mask_hides_the_future"),
        ("return torch.zeros(2**36)", "test_a_square_causal_mask_hides_the_future"),
    ],
)
def test_a_mutant_that_loops_or_crashes_is_killed(body, killed_by):
    mutant = next(m for m in mutants_of(MASKS, sources(MASKS)[:1]) if m.mutation.where == "causal_mask")
    code = f"import torch\ndef causal_mask(q_len, k_len=None):\n    {body}"
    runner = Runner(examination(MASKS), seconds=1)
    ((_, fate),) = runner.run([replace(mutant, code=code)])
    assert (fate.killed_by, fate.grader_error) == (killed_by, "")


def test_a_mutant_that_does_not_load_is_killed():
    mutant = replace(mutants_of(MASKS, sources(MASKS)[:1])[0], code="undefined")
    ((_, fate),) = Runner(examination(MASKS)).run([mutant])
    assert fate.killed_by == "does not load"


def test_a_sample_is_drawn_again_from_the_same_seed():
    everything = mutants_of(MASKS, sources(MASKS)[:1])
    first, again, other = (mutants._drawn(everything, Sample(9, seed), MASKS) for seed in ("1", "1", "2"))
    assert first == again != other
    assert len(first) == 9
    assert first == sorted(first, key=everything.index)


def test_the_command_counts_and_its_status_says_whether_there_is_a_fault(monkeypatch, capsys):
    drawn = []

    def examined(exercise, sample, advance):
        drawn.append(sample)
        mutant = mutants_of(exercise, sources(exercise)[:1])[0]
        return (
            Result(survivors=[mutant], faults=["it survives"]) if sample.seed == "bad" else Result(equivalent=[mutant])
        )

    monkeypatch.setattr(mutants, "examine_mutants", examined)
    assert main(["audit", "--mutants", "6", "13", "--sample", "3", "--seed", "good"]) == 0
    assert "mutants: 2 generated, 0 killed, 2 equivalent, 0 survivors; 0 faults" in capsys.readouterr().out
    assert main(["audit", "--mutants", "6", "--sample", "3", "--seed", "bad"]) == 1
    assert "  ✗ it survives\n" in capsys.readouterr().out
    assert drawn[-1] == Sample(3, "bad")


def test_a_sample_of_what_must_be_said(capsys):
    assert main(["audit", "6", "--sample", "3"]) == 2
    assert "add --mutants" in capsys.readouterr().err
