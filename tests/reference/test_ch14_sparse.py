"""The reference of chapter 14, compared with dense attention, PyTorch and masks drawn by hand."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.reference import ch14_sparse as reference


def drawn(*shape, seed=14):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def picture(mask):
    return ["".join(".1"[int(x)] for x in row) for row in mask]


def test_longformers_mask_by_hand():
    wanted = ["11.1..", "1111..", ".111..", "111111", "...111", "...111"]
    assert picture(reference.longformer_mask(6, 1, [3])) == wanted
    assert picture(reference.longformer_mask(6, 1, torch.tensor([3, 3]))) == wanted
    assert picture(reference.longformer_mask(3, 0, [])) == ["1..", ".1.", "..1"]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("tokens", "r"), [([4, 0], 3), ([], 9), (torch.tensor([7]), 0)])
def test_bigbird_adds_exactly_r_keys(seed, tokens, r):
    base = reference.longformer_mask(14, 2, tokens)
    mask = reference.bigbird_mask(14, 2, tokens, r, torch.Generator().manual_seed(seed))
    further = (mask & ~base).sum(-1)
    assert (mask | base).equal(mask)
    assert all(count == (0 if i in list(tokens) else r) for i, count in enumerate(further.tolist()))


def test_bigbird_uses_only_its_own_generator():
    before = torch.get_rng_state()
    same = [reference.bigbird_mask(30, 1, [2], 5, torch.Generator().manual_seed(s)) for s in (1, 1, 2)]
    assert same[0].equal(same[1])
    assert not same[0].equal(same[2])
    assert torch.get_rng_state().equal(before)
    generator = torch.Generator().manual_seed(1)
    first, second = (reference.bigbird_mask(30, 1, [2], 5, generator) for _ in range(2))
    assert not first.equal(second)


def test_bigbird_draws_all_free_keys_with_equal_probability():
    counts = sum(
        (
            reference.bigbird_mask(9, 1, [4], 2, torch.Generator().manual_seed(s))
            & ~reference.longformer_mask(9, 1, [4])
        ).int()
        for s in range(2000)
    )
    free = (~reference.longformer_mask(9, 1, [4])).sum(-1, keepdim=True)
    share = counts / 2000 / (2 / free.clamp(min=1))
    assert (share[~reference.longformer_mask(9, 1, [4])] - 1).abs().max() < 0.15


def test_bigbird_refuses_more_keys_than_a_row_has():
    generator = torch.Generator()
    assert reference.bigbird_mask(9, 2, [], 4, generator).sum(-1).min() == 7
    with pytest.raises(ValueError, match="fewer than 5"):
        reference.bigbird_mask(9, 2, [], 5, generator)
    assert reference.bigbird_mask(3, 0, [0, 1, 2], 7, generator).all()


@pytest.mark.parametrize(("n", "window"), [(1, 1), (2, 1), (7, 1), (10, 3), (11, 3), (5, 9)])
def test_a_window_needs_distance_over_width_hops(n, window):
    assert reference.hops(reference.longformer_mask(n, window, [])) == math.ceil((n - 1) / window)


def test_the_hops_of_global_tokens():
    window = reference.longformer_mask(257, 8, [])
    one_way = window.clone()
    one_way[0] = True
    assert reference.hops(window) == 32
    assert reference.hops(one_way) == 32
    assert reference.hops(reference.longformer_mask(257, 8, [0])) == 2


def test_the_hops_of_unusual_graphs():
    ring = torch.eye(6, dtype=torch.bool).roll(1, 1)
    assert reference.hops(ring) == 5
    assert reference.hops(ring | ring.T) == 3
    assert reference.hops(torch.ones(4, 4, dtype=torch.bool).tril()) == -1
    assert reference.hops(torch.zeros(1, 1, dtype=torch.bool)) == 0
    assert reference.hops(~torch.eye(2, dtype=torch.bool)) == 1


@pytest.mark.parametrize("window", [0, 1, 2, 4, 8, 12])
@pytest.mark.parametrize("lead", [(), (3,), (2, 5)])
def test_banded_attention_matches_dense_attention_with_a_band_mask(window, lead):
    q, k, v = drawn(*lead, 9, 4), drawn(*lead, 9, 4, seed=1), drawn(*lead, 9, 6, seed=2)
    wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=reference.longformer_mask(9, window, []))
    torch.testing.assert_close(reference.banded_attention(q, k, v, window), wanted)


def test_banded_gradients_match_finite_differences():
    inputs = [drawn(5, d, seed=d).requires_grad_() for d in (2, 2, 3)]
    inputs[1] = drawn(5, 2, seed=9).requires_grad_()
    assert torch.autograd.gradcheck(lambda q, k, v: reference.banded_attention(q, k, v, 1), inputs)


def test_tokens_outside_the_window_have_no_influence():
    q, k, v = drawn(9, 4), drawn(9, 4, seed=1), drawn(9, 6, seed=2)
    before = reference.banded_attention(q, k, v, 2)
    k[7:], v[7:] = 1e6, 1e6
    assert torch.equal(reference.banded_attention(q, k, v, 2)[:5], before[:5])
