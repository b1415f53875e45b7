"""Learners have other systems and older libraries than ours: what these lack must not break `check`."""

import subprocess
import sys

import pytest
import safetensors
import torch

from autograder.catalogue import find
from autograder.checks.samples import as_script, solution
from autograder.intake.submission import Submission, read
from autograder.learner.traceback import traceback_of
from autograder.student import wire

NOT_ON_WINDOWS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC")


def test_a_notebook_is_read_where_os_lacks_the_flags_of_linux(tmp_path):
    path = tmp_path / "06_masks.py"
    path.write_text(as_script(solution(find("06_masks"))), encoding="utf-8")
    code = (
        f"import os\nfor name in {NOT_ON_WINDOWS}: delattr(os, name)\n"
        "from pathlib import Path\n"
        "from autograder.catalogue import find\n"
        "from autograder.intake.submission import Submission, read\n"
        f"cells, _ = read(Submission('me', '06_masks', Path({str(path)!r})), find('06_masks'))\n"
        "assert 'def causal_mask' in cells[0].source\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_tensors_cross_the_wire_with_safetensors_before_0_8(monkeypatch, dtype):
    """Version 0.8 brought `TensorSpec`; before, tensors were given as bytes."""
    given = {}

    def serialize(tensors):
        given.update(tensors)
        return b""

    monkeypatch.delattr(safetensors, "TensorSpec")
    monkeypatch.setattr(wire, "serialize", serialize)
    tensor = torch.tensor([[1, 0, 3]]).to(dtype)
    wire.encode({"x": tensor})
    assert given["0"]["dtype"] == str(dtype).removeprefix("torch.")
    assert given["0"]["shape"] == [1, 3]
    assert given["0"]["data"] == tensor.view(torch.uint8).numpy().tobytes()


def test_a_traceback_is_shown_by_ipython_before_8_7(monkeypatch):
    """`format_code_name` came with 8.7; Colab has 7.34."""

    class Compiler:
        pass

    class Shell:
        compile = Compiler()

    monkeypatch.setattr("IPython.get_ipython", lambda: Shell())
    namespace: dict = {}
    exec(compile("def f():\n    return 1 / 0\n", "cell", "exec"), namespace)
    with pytest.raises(ZeroDivisionError) as raised:
        namespace["f"]()
    assert "cell, line 2, in f" in traceback_of(raised.value, namespace)


def test_a_script_with_a_byte_order_mark_is_read(tmp_path):
    """Windows editors put one in front of UTF-8 text, and Python accepts it."""
    path = tmp_path / "06_masks.py"
    path.write_text("def causal_mask(q_len, k_len=None): ...", encoding="utf-8-sig")
    cells, _ = read(Submission("me", "06_masks", path), find("06_masks"))
    assert cells[0].source.startswith("def causal_mask")
