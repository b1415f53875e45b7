"""The benchmarks compare like with like: every grader is asked about the same answers. How fast they are is not tested."""

import doctest

import pytest
from rich.console import Console

from autograder.benchmarks import BENCHMARKS, otter
from autograder.benchmarks import masks_class as specimens
from autograder.benchmarks.plot import draw
from autograder.benchmarks.timing import timed
from autograder.checks.samples import solution, with_answer
from autograder.intake.submission import discover, grade_id

MASKS = specimens.exercise()


def defined_by(notebook) -> dict:
    namespace = {}
    for cell in specimens.without_checks(notebook).cells:
        if cell.cell_type == "code":
            exec(cell.source, namespace)
    return namespace


@pytest.fixture(scope="module")
def right() -> dict:
    return defined_by(solution(MASKS))


@pytest.mark.parametrize("part", specimens.ASSERTS)
def test_the_plain_asserts_accept_the_solution_and_refuse_an_unwritten_answer(right, part):
    code = "\n".join(specimens.ASSERTS[part])
    exec(code, dict(right))
    unwritten = defined_by(with_answer(solution(MASKS), part, f"def {part}(*a, **k): return None"))
    with pytest.raises((AssertionError, TypeError, AttributeError)):
        exec(code, unwritten)


@pytest.mark.parametrize("part", specimens.ASSERTS)
def test_otter_is_given_the_same_asserts(right, part):
    file = {}
    exec(otter._test(part, specimens.ASSERTS[part]), file)
    ((case,),) = [suite["cases"] for suite in file["test"]["suites"]]
    examples = doctest.DocTestParser().get_examples(case["code"])
    assert [example.source.rstrip("\n") for example in examples] == specimens.ASSERTS[part]


def test_every_check_of_the_stock_assignment_is_a_plain_assert():
    notebook = specimens.with_asserts(solution(MASKS))
    checks = [cell for cell in notebook.cells if grade_id(cell).startswith("check-")]
    assert len(checks) == len(MASKS.parts)
    assert all("assert " in cell.source and "check(" not in cell.source for cell in checks)


def test_as_many_submissions_are_made_as_asked_for(tmp_path):
    specimens.right_and_wrong(tmp_path, 5)
    specimens.broken(tmp_path, 4)
    assert len(discover(tmp_path)) == 9


def test_a_command_that_fails_is_not_measured(tmp_path):
    with pytest.raises(RuntimeError, match="says why"):
        timed(["-c", "raise SystemExit('says why')"], tmp_path)


def test_a_command_is_measured_line_by_line(tmp_path):
    run = timed(["-c", "print(1); print(2)"], tmp_path)
    assert len(run.lines) == 2
    assert 0 < run.lines[0] <= run.lines[1] <= run.seconds
    assert run.peak_mb > 1


def test_the_plot_leaves_out_what_was_not_measured(tmp_path):
    measured = {"floor_seconds_each": 0.01, "ours_seconds_each": 0.1, "stock_nbgrader_seconds_each": 5.0}
    measured["otter_run_seconds_each"] = "not measured: no network"
    first = draw(measured, tmp_path / "plot.svg").read_bytes()
    assert first.startswith(b"<?xml")
    assert draw(measured, tmp_path / "plot.svg").read_bytes() == first


def test_dask_is_not_measured_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "not measured" in BENCHMARKS["dask"](Console(quiet=True), 1)["dask"]
