"""The reference of chapter 4, compared with simulations, torch.distributions and the numbers in the chapter."""

import math

import pytest
import torch
from torch import nn
from torch.distributions import Categorical

from autograder.reference import ch04_why_scale as reference


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_numbers_of_the_chapter():
    scores = reference.sample_scores(64, 100_000, seeded())
    assert (scores / math.sqrt(64)).var(unbiased=False).item() == pytest.approx(0.997921884059906, rel=1e-6)
    assert scores.var(unbiased=False).item() == pytest.approx(63.867000579833984, rel=1e-6)


def test_scores_are_row_by_row_dot_products():
    q, k = reference.sample_pairs(5, 7, seeded(3))
    torch.testing.assert_close(reference.sample_scores(5, 7, seeded(3)), torch.einsum("nd,nd->n", q, k))
    assert not torch.equal(q, k)
    assert reference.sample_scores(6, 1, seeded()).shape == (1,)


def test_sampled_pairs_match_two_plain_calls():
    torch.manual_seed(11)
    q, k = torch.randn(9, 4), torch.randn(9, 4)
    found = reference.sample_pairs(4, 9, seeded(11))
    assert torch.equal(found[0], q)
    assert torch.equal(found[1], k)


@pytest.mark.parametrize(
    ("moments", "expected"),
    [((), 64), ((0.25, 0.25), 4), ((1, 1, 0.5), 80), ((0, 4, 3), 64 * 36), ((2, 3, -1, 2), 64 * (6 + 3 + 8))],
)
def test_variances_by_hand(moments, expected):
    assert reference.score_variance(64, *moments) == expected


@pytest.mark.parametrize("moments", [(1, 1, 0, 0), (0.25, 4, 0, 0), (1, 1, 1, 0), (2.25, 0.5, -1, 0.5)])
def test_the_variance_formula_holds_for_samples(moments):
    var_q, var_k, mean_q, mean_k = moments
    q, k = reference.sample_pairs(16, 200_000, seeded(5))
    scores = ((q * var_q**0.5 + mean_q) * (k * var_k**0.5 + mean_k)).sum(-1)
    assert scores.var().item() == pytest.approx(reference.score_variance(16, *moments), rel=0.02)


def test_default_layers_give_a_ninth_of_the_variance():
    torch.manual_seed(0)
    x, y = torch.randn(2, 20_000, 256)
    to_q, to_k = nn.Linear(256, 256), nn.Linear(256, 256)
    with torch.no_grad():
        scores = (to_q(x) * to_k(y)).sum(-1)
    assert (scores / 16).var().item() == pytest.approx(reference.score_variance(256, 1 / 3, 1 / 3) / 256, rel=0.1)


def test_the_entropy_of_equal_weights_is_the_logarithm_of_their_number():
    for n in (1, 2, 7, 100):
        assert reference.entropy(torch.full((n,), 1 / n, dtype=torch.float64)).item() == pytest.approx(math.log(n))


def test_the_entropy_matches_torch_distributions():
    weights = torch.softmax(torch.randn(2, 3, 4, 5, generator=seeded(), dtype=torch.float64), -1)
    torch.testing.assert_close(reference.entropy(weights), Categorical(probs=weights).entropy())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_zero_weights_add_no_entropy(dtype):
    weights = torch.tensor([[1.0, 0, 0], [0.5, 0, 0.5], [0, 0, 0]], dtype=dtype)
    found = reference.entropy(weights)
    assert found.dtype == dtype
    torch.testing.assert_close(found, torch.tensor([0.0, math.log(2), 0.0], dtype=dtype))


def test_the_gradient_of_the_entropy():
    weights = torch.softmax(torch.randn(3, 4, generator=seeded(), dtype=torch.float64), -1).requires_grad_()
    assert torch.autograd.gradcheck(reference.entropy, (weights,))
    reference.entropy(weights).sum().backward()
    torch.testing.assert_close(weights.grad, -weights.detach().log() - 1)


def test_dead_rows_by_hand():
    weights = torch.tensor([[[1.0, 0, 0], [0.99, 0.01, 0]], [[0, 0, 0], [0.004, 0.004, 0.992]]], dtype=torch.float64)
    assert reference.dead_rows(weights) == 0.5
    assert reference.dead_rows(weights, 0.9) == 0.75
    assert reference.dead_rows(weights, threshold=1.0) == 0.0
    assert type(reference.dead_rows(weights)) is float


def test_a_single_row_is_dead_or_alive():
    assert reference.dead_rows(torch.tensor([1.0, 0.0])) == 1.0
    assert reference.dead_rows(torch.tensor([0.5, 0.5])) == 0.0
