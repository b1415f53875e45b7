"""The benchmarks give every grader the same answers and the same checks. Speed itself is not tested."""

import doctest

import pytest
from rich.console import Console

from autograder.benchmarks import BENCHMARKS, masks_class, otter
from autograder.benchmarks.plot import draw
from autograder.benchmarks.timing import timed
from autograder.checks.samples import solution, with_answer
from autograder.intake.submission import discover, grade_id

MASKS = masks_class.exercise()


def defined_by(notebook) -> dict:
    namespace = {}
    for cell in masks_class.without_checks(notebook).cells:
        if cell.cell_type == "code":
            exec(cell.source, namespace)
    return namespace


@pytest.fixture(scope="module")
def right() -> dict:
    return defined_by(solution(MASKS))


@pytest.mark.parametrize("part", masks_class.ASSERTS)
def test_the_plain_asserts_accept_the_solution_and_refuse_an_unwritten_answer(right, part):
    code = "\n".join(masks_class.ASSERTS[part])
    exec(code, dict(right))
    unwritten = defined_by(with_answer(solution(MASKS), part, f"def {part}(*a, **k): return None"))
    with pytest.raises((AssertionError, TypeError, AttributeError)):
        exec(code, unwritten)


@pytest.mark.parametrize("part", masks_class.ASSERTS)
def test_otter_gets_the_same_asserts(right, part):
    file = {}
    exec(otter._test(part, masks_class.ASSERTS[part]), file)
    ((case,),) = [suite["cases"] for suite in file["test"]["suites"]]
    examples = doctest.DocTestParser().get_examples(case["code"])
    assert [example.source.rstrip("\n") for example in examples] == masks_class.ASSERTS[part]


def test_every_check_of_the_stock_assignment_is_a_plain_assert():
    notebook = masks_class.with_asserts(solution(MASKS))
    checks = [cell for cell in notebook.cells if grade_id(cell).startswith("check-")]
    assert len(checks) == len(MASKS.parts)
    assert all("assert " in cell.source and "check(" not in cell.source for cell in checks)


def test_the_requested_number_of_submissions_is_made(tmp_path):
    masks_class.right_and_wrong(tmp_path, 5)
    masks_class.broken(tmp_path, 4)
    assert len(discover(tmp_path)) == 9


def test_a_command_that_fails_is_not_measured(tmp_path):
    with pytest.raises(RuntimeError, match="says why"):
        timed(["-c", "raise SystemExit('says why')"], tmp_path)


def test_each_printed_line_is_timed(tmp_path):
    run = timed(["-c", "print(1); print(2)"], tmp_path)
    assert len(run.lines) == 2
    assert 0 < run.lines[0] <= run.lines[1] <= run.seconds
    assert run.peak_mb > 1


def test_the_plot_skips_what_was_not_measured(tmp_path):
    measured = {"floor_seconds_each": 0.01, "ours_seconds_each": 0.1, "stock_nbgrader_seconds_each": 5.0}
    measured["otter_run_seconds_each"] = "not measured: no network"
    first = draw(measured, tmp_path / "plot.svg").read_bytes()
    assert first.startswith(b"<?xml")
    assert draw(measured, tmp_path / "plot.svg").read_bytes() == first


def test_dask_is_not_measured_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "not measured" in BENCHMARKS["dask"](Console(quiet=True), 1)["dask"]
