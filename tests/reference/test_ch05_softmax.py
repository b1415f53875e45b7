"""The reference of chapter 5, compared with PyTorch, autograd and numbers worked out by hand."""

import math

import pytest
import torch

from autograder.reference import ch05_softmax as reference

INF = torch.inf
DIMS = pytest.mark.parametrize("dim", [0, 1, 2, -1, -2])


@pytest.fixture
def x():
    return torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


@pytest.fixture
def with_holes(x):
    """Scores with some -inf, but none of the rows is empty along any axis."""
    x[0, 1, 2] = x[1, 0, 4] = x[1, 0, 0] = -INF
    return x


def at_an_empty_row(formula, x, *args):
    """Value and gradient when row [1, 2] has no finite score."""
    x = x.clone()
    x[1, 2] = -INF
    x.requires_grad_(True)
    value = formula(x, *args)
    (value.masked_fill(value == -INF, 0.0) * torch.arange(1.0, value.numel() + 1).view_as(value)).sum().backward()
    return value.detach(), x.grad


@DIMS
def test_softmax_matches_torch(x, dim):
    torch.testing.assert_close(reference.stable_softmax(x, dim), torch.softmax(x, dim))


@DIMS
def test_logsumexp_matches_torch(x, dim):
    torch.testing.assert_close(reference.logsumexp(x, dim), torch.logsumexp(x, dim))


@DIMS
def test_minus_infinity_is_treated_as_in_torch(with_holes, dim):
    torch.testing.assert_close(reference.stable_softmax(with_holes, dim), torch.softmax(with_holes, dim))
    torch.testing.assert_close(reference.logsumexp(with_holes, dim), torch.logsumexp(with_holes, dim))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_dtype_is_kept_and_huge_scores_are_safe(dtype):
    x = torch.tensor([[1e4, 1e4, -1e4], [-1e4, -1e4, -1e4]], dtype=dtype)
    wanted = torch.tensor([[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]], dtype=dtype)
    torch.testing.assert_close(reference.stable_softmax(x), wanted)
    torch.testing.assert_close(reference.logsumexp(x), torch.logsumexp(x, -1))


def test_the_worked_example_of_the_notes_is_corrected():
    weights = reference.stable_softmax(torch.tensor([2.3, 9.1, 0.5], dtype=torch.float64))
    assert [round(weight, 5) for weight in weights.tolist()] == [0.00111, 0.9987, 0.00018]


def test_small_numbers_by_hand():
    x = torch.tensor([0.0, math.log(2.0), math.log(5.0)], dtype=torch.float64)
    mask = torch.tensor([True, False, True])
    torch.testing.assert_close(reference.stable_softmax(x), torch.tensor([1.0, 2.0, 5.0]).double() / 8)
    torch.testing.assert_close(reference.logsumexp(x), torch.tensor(math.log(8.0)).double())
    torch.testing.assert_close(reference.temperature_softmax(x, 0.5), torch.tensor([1.0, 4.0, 25.0]).double() / 30)
    torch.testing.assert_close(reference.masked_softmax(x, mask), torch.tensor([1.0, 0.0, 5.0]).double() / 6)


def test_a_vjp_by_hand():
    p = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    grad = torch.tensor([1.0, 0.0, 4.0], dtype=torch.float64)  # their inner product is 1.5
    wanted = torch.tensor([-0.25, -0.375, 0.625], dtype=torch.float64)
    assert torch.equal(reference.softmax_vjp(p, grad), wanted)


@pytest.mark.parametrize("temperature", [0.01, 1.0, 40.0])
@pytest.mark.parametrize("dim", [-1, 1])
def test_temperature_divides_the_scores(x, temperature, dim):
    wanted = torch.softmax(x / temperature, dim)
    torch.testing.assert_close(reference.temperature_softmax(x, temperature, dim), wanted)


@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 5), (5,), (2, 1, 5), (3, 1)])
@pytest.mark.parametrize("dim", [-1, 1])
def test_masked_softmax_is_the_softmax_over_the_allowed_entries(x, shape, dim):
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.6
    wanted = torch.softmax(x.masked_fill(~mask, -INF), dim).nan_to_num(0.0)
    torch.testing.assert_close(reference.masked_softmax(x, mask, dim), wanted)


def test_the_vjp_matches_autograd(x):
    grad = torch.randn(x.shape, generator=torch.Generator().manual_seed(6), dtype=x.dtype)
    x.requires_grad_(True)
    p = torch.softmax(x, -1)
    (wanted,) = torch.autograd.grad(p, x, grad)
    torch.testing.assert_close(reference.softmax_vjp(p.detach(), grad), wanted)


def test_the_vjp_of_saturated_and_empty_rows_is_zero():
    p = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert torch.equal(reference.softmax_vjp(p, torch.tensor([[3.0, -2.0, 5.0], [1.0, 2.0, 3.0]])), torch.zeros(2, 3))


@pytest.mark.parametrize("dim", [-1, 0])
def test_gradients_pass_gradcheck(x, dim):
    mask = torch.rand(x.shape, generator=torch.Generator().manual_seed(2)) < 0.6
    x.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda x: reference.stable_softmax(x, dim), x)
    assert torch.autograd.gradcheck(lambda x: reference.logsumexp(x, dim), x)
    assert torch.autograd.gradcheck(lambda x: reference.temperature_softmax(x, 0.7, dim), x)
    assert torch.autograd.gradcheck(lambda x: reference.masked_softmax(x, mask, dim), x)


def test_the_vjp_passes_gradcheck(x):
    p = torch.softmax(x, -1).requires_grad_(True)
    assert torch.autograd.gradcheck(reference.softmax_vjp, (p, x.clone().requires_grad_(True)))


@pytest.mark.parametrize(
    ("formula", "args"),
    [
        (reference.stable_softmax, ()),
        (reference.temperature_softmax, (0.3,)),
        (reference.masked_softmax, (torch.ones(5, dtype=torch.bool),)),
    ],
)
def test_a_row_of_minus_infinity_gives_zeros_and_no_nan_gradient(x, formula, args):
    weights, gradient = at_an_empty_row(formula, x, *args)
    assert torch.equal(weights[1, 2], torch.zeros(5, dtype=x.dtype))
    assert gradient.isfinite().all()
    assert torch.equal(gradient[1, 2], torch.zeros(5, dtype=x.dtype))
    torch.testing.assert_close(weights[0], formula(x, *args)[0])


def test_logsumexp_of_a_row_of_minus_infinity_is_minus_infinity_without_nan_gradient(x):
    lse, gradient = at_an_empty_row(reference.logsumexp, x)
    assert lse[1, 2] == -INF
    assert gradient.isfinite().all()
    torch.testing.assert_close(gradient[0, 1], 2 * torch.softmax(x[0, 1], -1))


def test_a_huge_forbidden_score_has_no_effect(x):
    mask = torch.ones(2, 3, 5, dtype=torch.bool)
    mask[..., 3] = False
    loud = x.clone()
    loud[..., 3] = 1e300
    assert torch.equal(reference.masked_softmax(loud, mask), reference.masked_softmax(x, mask))


def test_inputs_are_not_changed(x):
    before, mask = x.clone(), x > 0
    kept = mask.clone()
    reference.stable_softmax(x), reference.logsumexp(x), reference.temperature_softmax(x, 2.0)
    reference.masked_softmax(x, mask), reference.softmax_vjp(x, x)
    assert torch.equal(x, before)
    assert torch.equal(mask, kept)
