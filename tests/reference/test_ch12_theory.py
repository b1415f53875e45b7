"""The reference of chapter 12, compared with PyTorch and with the theory."""

import pytest
import torch
import torch.nn.functional as F

from autograder.reference import ch12_theory as reference


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(12)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("width", [1, 2, 4, 7])
def test_the_rank_of_the_log_weights_is_one_more_than_the_width(draw, width):
    assert reference.log_weight_rank(draw(16, width), draw(20, width)) == width + 1


def test_the_rank_matches_torchs_matrix_rank(draw):
    q, k = draw(6, 3), draw(9, 3)
    logs = torch.log_softmax(q @ k.T / 3**0.5, -1)
    for tolerance in (1e-9, 0.05, 0.5):
        assert reference.log_weight_rank(q, k, tolerance) == torch.linalg.matrix_rank(logs, rtol=tolerance)


def test_a_constant_feature_in_the_keys_removes_the_extra_rank(draw):
    q, k = draw(9, 4), draw(8, 4)
    k[:, 0] = 1.0
    assert reference.log_weight_rank(q, k) == 4


def test_equal_keys_have_rank_one(draw):
    assert reference.log_weight_rank(draw(5, 3), draw(1, 3).expand(7, 3)) == 1


def weights(q, k):
    return torch.softmax(q @ k.T / q.shape[1] ** 0.5, -1)


def test_a_permutation_head_moves_the_values_in_pytorchs_attention(draw):
    perm = torch.tensor([2, 0, 3, 1, 4])
    q, k = reference.permutation_head(perm)
    v = draw(5, 6)
    torch.testing.assert_close(F.scaled_dot_product_attention(q[None], k[None], v[None])[0], v[perm])


def test_a_blurred_permutation_by_hand():
    w = weights(*reference.permutation_head(torch.tensor([1, 0, 3, 2]), sharpness=2.0))  # the scores are 1 and 0
    e = torch.tensor(1.0, dtype=torch.float64).exp()
    assert torch.allclose(w[0], torch.stack([e**0, e, e**0, e**0]) / (3 + e))


def test_every_token_looks_one_back():
    expected = torch.tensor([[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], dtype=torch.float64)
    torch.testing.assert_close(weights(*reference.previous_token_head(4)), expected)


@pytest.mark.parametrize("skip", [False, True])
def test_the_layers_match_pytorchs_attention(draw, skip):
    x = y = draw(5, 7)
    for layer, distance in enumerate(reference.rank_collapse(x, 3, skip)):
        torch.testing.assert_close((y - y.mean(0)).norm() / y.norm(), distance)
        assert layer < 4
        y = F.scaled_dot_product_attention(y[None], y[None], y[None])[0] + (y if skip else 0)


def test_attention_collapses_only_without_skip_connections(draw):
    x = 0.7 * draw(6, 9)
    bare, skipping = reference.rank_collapse(x, 10, False), reference.rank_collapse(x, 10, True)
    assert bare[-1] < 1e-12
    assert skipping[-1] > 0.1


def test_equal_tokens_have_no_distance(draw):
    assert reference.rank_collapse(draw(1, 4).expand(6, 4), 2, True).max() < 1e-15


def test_the_collapse_is_differentiable(draw):
    assert torch.autograd.gradcheck(lambda x: reference.rank_collapse(x, 2, True), draw(3, 4).requires_grad_())
