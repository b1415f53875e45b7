"""The measured tolerance accepts every right way of computing and nothing else."""

import re

import pytest
import torch

from autograder.exam.comparison import agree, agree_gradients
from autograder.exam.complexity import grows_at_most, growth
from autograder.exam.promises import Draw
from autograder.exam.proxy import Local, Student
from autograder.verdicts import Broken, Verdict


def softmax(x):
    return torch.softmax(x, -1)


def pair(x):
    return x * 2, x.sum(-1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_exp_minus_logsumexp_is_a_right_softmax(dtype, scale):
    for salt in range(20):
        x = Draw("x", str(salt))(3, 7, scale=scale).to(dtype)
        agree((x - x.logsumexp(-1, keepdim=True)).exp(), softmax, x)


def test_a_long_sum_may_be_computed_in_any_order():
    def mixed(scores, values):
        return torch.softmax(scores, -1) @ values

    for salt in range(20):
        scores, values = Draw("x", str(salt))(4096, scale=0.1), torch.ones(4096, dtype=torch.float64)
        one_by_one = sum((torch.softmax(scores, -1) * values).unbind())
        agree(one_by_one, mixed, scores, values)


def test_computing_in_float64_and_casting_back_is_right():
    x = Draw("x", "")(3, 7, dtype=torch.float32)
    agree(softmax(x.double()).float(), softmax, x)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-9, 1e-12])
def test_an_epsilon_in_the_denominator_is_detected(epsilon):
    x = Draw("x", "")(3, 7)
    with pytest.raises(Broken, match="off by"):
        agree(x.exp() / (x.exp().sum(-1, keepdim=True) + epsilon), softmax, x)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda x: None, "NoneType, expected a tensor"),
        (lambda x: x.tolist(), "list, expected a tensor"),
        (lambda x: softmax(x)[None], "shape"),
        (lambda x: softmax(x).float(), "dtype float32, expected float64"),
        (lambda x: softmax(x) * torch.nan, "not the same"),
        (lambda x: torch.zeros_like(x), "off by"),
    ],
)
def test_shape_and_dtype_are_compared_before_values(answer, complaint):
    x = Draw("x", "")(3, 7)
    with pytest.raises(Broken, match=complaint) as raised:
        agree(answer(x), softmax, x)
    assert raised.value.verdict is Verdict.WRONG
    assert raised.value.message.en
    assert raised.value.message.zh


def test_the_worst_element_is_reported_with_both_values():
    x = Draw("x", "")(3, 7)
    wrong = softmax(x)
    wrong[1, 4] += 0.25
    with pytest.raises(Broken) as raised:
        agree(wrong, softmax, x)
    assert "off by 0.25 at [1, 4]" in raised.value.message.en
    assert "yours" in raised.value.message.en


def test_as_many_digits_are_shown_as_it_takes_to_see_a_difference():
    x = Draw("x", "")(3, 7)
    with pytest.raises(Broken) as raised:
        agree(softmax(x.float()).double(), softmax, x)
    for message in (raised.value.message.en, raised.value.message.zh):
        yours, expected = re.search(r"(?:yours|你的) ([\d.e-]+).*?(?:expected|应为) ([\d.e-]+)", message).groups()
        assert yours != expected
        assert "torch.zeros" in message


def test_a_large_error_is_not_called_lost_precision():
    x = Draw("x", "")(3, 7)
    with pytest.raises(Broken) as raised:
        agree(softmax(x) * 1.01, softmax, x)
    assert "float32" not in raised.value.message.en


def test_a_cut_graph_is_told_from_a_wrong_gradient():
    x, weight = Draw("x", "")(3, 7), Draw("w", "")(3, 7)
    for gradient, cut in ((None, True), (torch.zeros_like(x), False)):
        with pytest.raises(Broken) as raised:
            agree_gradients([gradient], softmax, x, wrt=(0,), cotangents=(weight,))
        assert ("no gradient arrives" in raised.value.message.en) == cut
        assert ("没有梯度传到这里" in raised.value.message.zh) == cut


@pytest.mark.parametrize(
    "answer", [lambda x: x * 2, lambda x: (x * 2,), lambda x: (x * 2, x.sum(-1), x), lambda x: None]
)
def test_a_pair_must_be_a_pair(answer):
    x = Draw("x", "")(3, 7)
    with pytest.raises(Broken, match="expected a pair"):
        agree(answer(x), pair, x)


def test_infinities_must_be_in_the_same_places():
    def bias(x):
        return x.masked_fill(x > 0, -torch.inf)

    x = Draw("x", "")(3, 7)
    agree(bias(x), bias, x)
    with pytest.raises(Broken):
        agree(bias(x).clamp(min=-1e9), bias, x)


def test_gradients_are_compared_by_value_and_none_counts_as_zero():
    x, weight = Draw("x", "")(3, 7), Draw("w", "")(3, 7)
    asked = {"wrt": (0,), "cotangents": (weight,)}
    p = softmax(x)
    right = p * (weight - (p * weight).sum(-1, keepdim=True))
    agree_gradients([right], softmax, x, **asked)
    for wrong in (p * weight, None):
        with pytest.raises(Broken, match="∂/∂x"):
            agree_gradients([wrong], softmax, x, **asked)


@pytest.mark.parametrize("power", [0, 1, 2, 3])
def test_the_growth_exponent_is_fitted(power):
    assert growth({n: 5 * n**power for n in (32, 64, 128)}) == pytest.approx(power)


def test_a_quadratic_tensor_is_found_by_counting():
    def outer(x):
        return (x[:, None] * x[None]).sum(-1)

    student = Student(Local({"outer": outer, "inner": lambda x: x * x.sum()}))
    inputs = {"inputs": lambda n: (torch.ones(n),), "lengths": (32, 64, 128), "power": 1}
    grows_at_most(student, "inner", what="largest", **inputs)
    with pytest.raises(Broken, match=r"grows as n\^2\.0; n\^1\.0 is required"):
        grows_at_most(student, "outer", what="largest", **inputs)


def test_draws_depend_only_on_name_and_salt():
    assert torch.equal(Draw("a", "s")(3), Draw("a", "s")(3))
    assert not torch.equal(Draw("a", "s")(3), Draw("a", "t")(3))
    assert not torch.equal(Draw("a", "s")(3), Draw("b", "s")(3))


def test_a_random_mask_allows_and_forbids_a_key_in_every_row():
    for salt in range(50):
        mask = Draw("m", str(salt)).mask(3, 4, 5)
        assert mask.any(-1).all()
        assert not mask.all(-1).any()


def test_a_scalar_tensor_can_be_an_argument():
    x, factor = Draw("x", "")(3, 7), torch.tensor(0.5, dtype=torch.float64)
    for _ in range(2):
        agree(x * 0.5, lambda x, factor: x * factor, x, factor)


def test_uninitialised_memory_does_not_widen_the_tolerance():
    def tripled(x):
        return torch.empty_like(x).copy_(x) * 3

    for size in range(60, 68):
        x = torch.ones(size, dtype=torch.float64)
        torch.full_like(x, 1e300)  # freed immediately, so the next tensor of this size may reuse its memory
        with pytest.raises(Broken):
            agree(tripled(x) + 1e-6, tripled, x)
