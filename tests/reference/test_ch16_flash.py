"""The reference of chapter 16, compared with plain attention, PyTorch and autograd."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.reference import ch16_flash as reference


def drawn(*shape, seed=16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def inputs(queries, keys, *lead):
    return drawn(*lead, queries, 4), drawn(*lead, keys, 4, seed=1), drawn(*lead, keys, 6, seed=2)


def allowed(queries, keys, causal, window):
    ahead = torch.arange(keys) - torch.arange(queries)[:, None] - (keys - queries)
    mask = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        mask &= ahead <= 0
    return mask if window is None else mask & (ahead.abs() <= window)


RULES = [(False, None), (True, None), (False, 2), (True, 2), (True, 0), (False, 30)]
SIZES = [(7, 11), (8, 8), (11, 7), (1, 9), (9, 1)]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 12, 40])
def test_online_softmax_matches_softmax(block):
    x = drawn(3, 12) * 5
    x[0, :6] = -math.inf
    torch.testing.assert_close(reference.online_softmax(x, block), torch.softmax(x, -1))
    assert torch.equal(reference.online_softmax(torch.full((2, 5), -math.inf), block), torch.zeros(2, 5))


def test_merging_is_associative_commutative_and_has_an_empty_state():
    parts = [(drawn(5, 3, seed=s), 9 * drawn(5, seed=10 + s)) for s in range(3)]
    a, b, c = parts
    left = reference.merge_partial(*reference.merge_partial(*a, *b), *c)
    torch.testing.assert_close(left, reference.merge_partial(*a, *reference.merge_partial(*c, *b)))
    nothing = torch.zeros(5, 3).double(), torch.full((5,), -math.inf).double()
    assert all(map(torch.equal, reference.merge_partial(*a, *nothing), a))
    assert all(map(torch.equal, reference.merge_partial(*nothing, *nothing), nothing))


@pytest.mark.parametrize("block", [1, 3, 4, 64])
@pytest.mark.parametrize(("causal", "window"), RULES)
@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_the_tiled_forward_pass_is_exact(queries, keys, causal, window, block):
    q, k, v = inputs(queries, keys, 2, 3)
    mask = allowed(queries, keys, causal, window)
    out, lse = reference.flash_forward(q, k, v, block, causal, window)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
    scores = (q @ k.mT / 2).masked_fill(~mask, -math.inf)
    torch.testing.assert_close(lse, scores.logsumexp(-1))


@pytest.mark.parametrize("block", [1, 3, 64])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_the_tiled_backward_pass_matches_autograd(queries, keys, causal, block):
    leaves = [x.requires_grad_() for x in inputs(queries, keys, 2)]
    mask = allowed(queries, keys, causal, None)
    dout = drawn(2, queries, 6, seed=3)
    wanted = torch.autograd.grad(F.scaled_dot_product_attention(*leaves, attn_mask=mask), leaves, dout)
    plain = [x.detach() for x in leaves]
    found = reference.flash_backward(*plain, *reference.flash_forward(*plain, block, causal), dout, block, causal)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(("causal", "window"), RULES)
@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_exactly_the_empty_tiles_are_skipped(queries, keys, causal, window):
    mask = allowed(queries, keys, causal, window)
    for i in range(0, queries, 3):
        for j in range(0, keys, 3):
            holds = bool(mask[i : i + 3, j : j + 3].any())
            assert reference._some_may_look(i, j, 3, queries, keys, causal, window) == holds
