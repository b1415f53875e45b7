"""The reference of chapter 7, compared with PyTorch where both agree, and with probability theory."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.reference import ch07_dropout as reference


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(7)
    return lambda *shape, dtype=torch.float64: torch.randn(*shape, generator=generator, dtype=dtype)


def seeded(seed=1):
    return torch.Generator().manual_seed(seed)


def heads(draw):
    return draw(2, 3, 4, 9), draw(2, 3, 6, 9), draw(2, 3, 6, 7)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.25, 0.5])
def test_kept_weights_are_scaled_as_in_pytorch(draw, p, dtype):
    weights = torch.softmax(draw(3, 40, 50), -1).to(dtype)
    torch.manual_seed(3)
    theirs = F.dropout(weights, p)
    torch.testing.assert_close(reference.surviving(weights, theirs != 0, p), theirs)


@pytest.mark.parametrize("p", [0.05, 0.3, 0.9])
def test_a_share_p_is_dropped_and_the_mean_is_kept(p):
    dropped = reference.attention_dropout(torch.ones(1000, 1000), p, True, seeded())
    assert (dropped == 0).double().mean().item() == pytest.approx(p, abs=0.002)
    assert dropped.double().mean().item() == pytest.approx(1.0, abs=0.02)


def test_a_row_sums_to_one_only_in_expectation(draw):
    weights = torch.softmax(draw(4, 6), -1)
    dropped = reference.attention_dropout(weights.expand(20000, 4, 6), 0.3, True, seeded())
    torch.testing.assert_close(dropped.mean(0), weights, atol=0.01, rtol=0)
    spread = (0.3 / 0.7 * weights.square().sum(-1)).sqrt()  # √(p/(1−p) Σ w²)
    torch.testing.assert_close(dropped.sum(-1).std(0), spread, atol=0, rtol=0.03)


def test_evaluation_and_the_extreme_probabilities(draw):
    weights = torch.softmax(draw(3, 5), -1)
    assert torch.equal(reference.attention_dropout(weights, 0.9, False), weights)
    assert torch.equal(reference.attention_dropout(weights, 0, True), weights)
    assert torch.equal(reference.attention_dropout(weights, 1, True), torch.zeros_like(weights))


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
@pytest.mark.parametrize("training", [True, False])
def test_a_probability_outside_0_to_1_is_refused(p, training):
    with pytest.raises(ValueError, match="between 0 and 1"):
        reference.attention_dropout(torch.ones(2, 3), p, training)


def test_the_generator_decides_and_the_global_one_is_the_default():
    ones = torch.ones(20, 30)
    assert torch.equal(*(reference.attention_dropout(ones, 0.5, True, seeded(4)) for _ in range(2)))
    assert not torch.equal(*(reference.attention_dropout(ones, 0.5, True, seeded(seed)) for seed in (4, 5)))
    torch.manual_seed(8)
    first = reference.attention_dropout(ones, 0.5, True)
    assert not torch.equal(first, reference.attention_dropout(ones, 0.5, True))
    torch.manual_seed(8)
    assert torch.equal(first, reference.attention_dropout(ones, 0.5, True))


@pytest.mark.parametrize("p", [0.0, 0.4, 1.0])
def test_gradients_match_finite_differences(draw, p):
    weights = torch.softmax(draw(3, 5), -1).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: reference.attention_dropout(w, p, True, seeded()), weights)


def test_without_dropout_it_matches_pytorchs_attention(draw):
    q, k, v = heads(draw)
    mask = torch.rand(2, 1, 4, 6, generator=seeded()) < 0.6
    mask[..., 0] = True
    mask[1, 0, 2] = False
    for given in (None, mask):
        out, weights = reference.attention_with_dropout(q, k, v, 0.5, False, given)
        torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, attn_mask=given))
        torch.testing.assert_close(weights @ v, out)


def test_the_output_uses_dropped_weights_but_undropped_weights_are_returned(draw):
    q, k, _ = heads(draw)
    out, weights = reference.attention_with_dropout(q, k, torch.eye(6).double(), 0.3, True, generator=seeded())
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 4).double())
    torch.testing.assert_close(out, reference.attention_dropout(weights, 0.3, True, seeded()))
    assert (out == 0).any()


def test_gradients_of_attention_with_dropout(draw):
    mask = torch.rand(4, 6, generator=seeded()) < 0.6
    mask[2] = False
    inputs = [x[0, 0].clone().requires_grad_() for x in heads(draw)]
    assert torch.autograd.gradcheck(
        lambda q, k, v: reference.attention_with_dropout(q, k, v, 0.4, True, mask, seeded()), inputs
    )
