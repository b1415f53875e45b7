"""The reference of chapter 15, compared with the full table of weights and with softmax attention."""

import pytest
import torch
import torch.nn.functional as F

from autograder.reference import ch15_linear as reference


def drawn(*shape, seed=15):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def table(fq, fk, v, causal):
    weights = fq @ fk.mT
    weights = weights.tril() if causal else weights
    return weights / weights.sum(-1, keepdim=True) @ v


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_matches_the_table_of_kernel_weights(causal):
    q, k, v = drawn(2, 3, 9, 4, seed=1), drawn(2, 3, 9, 4, seed=2), drawn(2, 3, 9, 5, seed=3)
    wanted = table(F.elu(q) + 1, F.elu(k) + 1, v, causal)
    torch.testing.assert_close(reference.linear_attention(q, k, v, causal), wanted)


def test_parallel_and_recurrent_agree():
    q, k, v = drawn(2, 33, 4, seed=1), drawn(2, 33, 4, seed=2), drawn(2, 33, 5, seed=3)
    torch.testing.assert_close(
        reference.linear_attention_recurrent(q, k, v), reference.linear_attention(q, k, v, causal=True)
    )


def test_without_softmax_the_product_is_associative():
    q, k, v = drawn(50, 4, seed=1), drawn(50, 4, seed=2), drawn(50, 4, seed=3)
    torch.testing.assert_close((q @ k.T) @ v, q @ (k.T @ v))


def test_features_are_positive_and_their_product_is_the_exponential_on_average():
    x, y, W = drawn(6, 8, seed=1) / 4, drawn(5, 8, seed=2) / 4, drawn(200_000, 8, seed=3)
    fx, fy = reference.favor_features(x, W), reference.favor_features(y, W)
    assert (fx > 0).all()
    torch.testing.assert_close(fx @ fy.T, torch.exp(x @ y.T), rtol=0.05, atol=0.0)


@pytest.mark.parametrize("causal", [False, True])
def test_performer_matches_the_table_of_feature_products_and_approximates_softmax(causal):
    q, k, v = (drawn(2, 12, 16, seed=s) / 2 for s in (1, 2, 3))
    exact = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    W = drawn(7, 16, seed=4)
    fq, fk = reference.favor_features(q / 2, W), reference.favor_features(k / 2, W)
    torch.testing.assert_close(reference.performer(q, k, v, W, causal), table(fq, fk, v, causal))
    errors = [(reference.performer(q, k, v, drawn(r, 16, seed=5), causal) - exact).norm() for r in (16, 512, 32768)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_linformer_is_attention_with_the_identity_and_otherwise_sees_the_future():
    q, k, v = drawn(2, 9, 16, seed=1), drawn(2, 9, 16, seed=2), drawn(2, 9, 5, seed=3)
    whole = torch.eye(9, dtype=torch.float64)
    torch.testing.assert_close(reference.linformer(q, k, v, whole, whole), F.scaled_dot_product_attention(q, k, v))
    E = drawn(3, 9, seed=4)
    changed = v.clone()
    changed[:, -1] += 1
    moved = reference.linformer(q, k, changed, E, E) - reference.linformer(q, k, v, E, E)
    assert moved[:, 0].abs().max() > 0.01


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_match_finite_differences(causal):
    q, k, v = (drawn(5, 3, seed=s).requires_grad_() for s in (1, 2, 3))
    W, E = drawn(4, 3, seed=4), drawn(2, 5, seed=5)
    assert torch.autograd.gradcheck(lambda *x: reference.linear_attention(*x, causal), (q, k, v))
    assert torch.autograd.gradcheck(lambda *x: reference.performer(*x, W, causal), (q, k, v))
    assert torch.autograd.gradcheck(reference.linear_attention_recurrent, (q, k, v))
    assert torch.autograd.gradcheck(lambda *x: reference.linformer(*x, E, E), (q, k, v))
