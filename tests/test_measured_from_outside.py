"""Memory that is not counted inside the process is measured from outside, by the kernel."""

import pytest

from autograder.catalogue import find
from autograder.checks.samples import hand_in, solution, with_answer
from autograder.grading.grade import Conditions, grade_file
from autograder.results import PartReport

SOFTMAX = find("05_softmax")

IN_NUMPY = """
import numpy as np
import torch

def softmax_vjp(p, grad):
    weights, slope = p.detach().to(torch.float64).numpy(), grad.detach().to(torch.float64).numpy()
    jacobian = weights[..., :, None] * (np.eye(weights.shape[-1]) - weights[..., None, :])
    return torch.from_numpy((jacobian * slope[..., :, None]).sum(-2)).to(p.dtype)
"""

AFTER_AN_EARLIER_PEAK = "ballast = bytearray(300 * 2**20)\ndel ballast\n" + IN_NUMPY

LINEAR_IN_NUMPY = """
import torch

def softmax_vjp(p, grad):
    weights, slope = p.detach().to(torch.float64).numpy(), grad.detach().to(torch.float64).numpy()
    return torch.from_numpy(weights * (slope - (weights * slope).sum(-1, keepdims=True))).to(p.dtype)
"""


def graded(folder, answer) -> PartReport:
    path = hand_in(folder, "somebody", SOFTMAX, with_answer(solution(SOFTMAX), "softmax_vjp", answer))
    report = grade_file("somebody", SOFTMAX.name, path, Conditions("salt", may_lack=None)).report
    return next(part for part in report.parts if part.id == "softmax_vjp")


@pytest.mark.parametrize("answer", [IN_NUMPY, AFTER_AN_EARLIER_PEAK], ids=["in numpy", "behind an earlier peak"])
def test_a_jacobian_hidden_in_numpy_is_found(tmp_path, answer):
    part = graded(tmp_path, answer)
    assert part.verdict == "wrong"
    assert "MB" in part.message.en


def test_linear_work_in_numpy_is_right(tmp_path):
    assert graded(tmp_path, LINEAR_IN_NUMPY).verdict == "pass"
