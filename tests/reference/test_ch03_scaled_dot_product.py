"""The reference of chapter 3, compared with PyTorch where both agree, and with numbers worked out by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder.reference import ch03_scaled_dot_product as reference

attend = reference.scaled_dot_product_attention


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(3)
    return lambda *shape, dtype=torch.float64: torch.randn(*shape, generator=generator, dtype=dtype)


@pytest.fixture
def allowed():
    """A mask [2, 3, 4, 6] in which every query may see some keys but not all."""
    mask = torch.rand(2, 3, 4, 6, generator=torch.Generator().manual_seed(4)) < 0.6
    mask[..., 0], mask[..., 5] = True, False
    return mask


@pytest.fixture
def one_query():
    """Dot products 4, 2 and 0, and d_k = 4: the scores are 2, 1 and 0."""
    q = torch.ones(1, 4, dtype=torch.float64)
    k = torch.tensor([[1.0, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]], dtype=torch.float64)
    return q, k, torch.tensor([[10.0], [20], [40]], dtype=torch.float64)


def heads(draw, dtype=torch.float64):
    return draw(2, 3, 4, 5, dtype=dtype), draw(2, 3, 6, 5, dtype=dtype), draw(2, 3, 6, 7, dtype=dtype)


def shares(*scores):
    """The softmax of a few numbers, in plain Python."""
    powers = [math.exp(score) for score in scores]
    return torch.tensor([[power / sum(powers) for power in powers]], dtype=torch.float64)


def test_one_query_by_hand(one_query):
    out, weights = attend(*one_query)
    torch.testing.assert_close(weights, shares(2, 1, 0))
    torch.testing.assert_close(out, shares(2, 1, 0) @ one_query[2])
    torch.testing.assert_close(reference.attention_loops(*one_query), out)


def test_the_weight_of_a_forbidden_key_goes_to_the_others(one_query):
    weights = attend(*one_query, mask=torch.tensor([[True, False, True]]))[1]
    first, last = shares(2, 0)[0]
    torch.testing.assert_close(weights, torch.tensor([[first, 0.0, last]], dtype=torch.float64))


def test_a_score_difference_of_ln_3_gives_weights_of_three_to_one(draw):
    q, k = torch.ones(1, 1, dtype=torch.float64), torch.tensor([[math.log(3)], [0.0]], dtype=torch.float64)
    for shift in (0.0, 1000.0):
        weights = attend(q, k + shift, draw(2, 3))[1]
        torch.testing.assert_close(weights, torch.tensor([[0.75, 0.25]], dtype=torch.float64))


def test_scale_zero_gives_the_mean(draw):
    q, k, v = heads(draw)
    out, weights = attend(q, k, v, scale=0.0)
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / 6))
    torch.testing.assert_close(out, v.mean(-2, keepdim=True).expand_as(out))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_attention_matches_pytorch(draw, dtype):
    q, k, v = heads(draw, dtype)
    torch.testing.assert_close(attend(q, k, v)[0], F.scaled_dot_product_attention(q, k, v))


def test_masked_and_rescaled_attention_matches_pytorch(draw, allowed):
    q, k, v = heads(draw)
    for mask in (allowed, allowed[0, 0], allowed[:, :1, :1]):
        ours = attend(q, k, v, mask, 0.3)[0]
        torch.testing.assert_close(ours, F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.3))


def test_a_blind_query_gets_zeros_as_in_pytorch(draw, allowed):
    q, k, v = heads(draw)
    allowed[1, 2, 3] = False
    out, weights = attend(q, k, v, allowed)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, attn_mask=allowed))
    assert not out[1, 2, 3].any()
    assert not weights[1, 2, 3].any()


def test_weights_match_nn_multihead_attention(draw):
    module = nn.MultiheadAttention(5, 1, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.eye(5).repeat(3, 1))
        module.out_proj.weight.copy_(torch.eye(5))
    x, memory = draw(2, 4, 5), draw(2, 6, 5)
    for ours, theirs in zip(attend(x, memory, memory), module(x, memory, memory), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_loops_match_the_matrix_form(draw):
    for lq, lk in ((3, 5), (5, 3), (4, 4), (1, 2), (2, 1)):
        q, k, v = draw(lq, 6), draw(lk, 6), draw(lk, 7)
        torch.testing.assert_close(reference.attention_loops(q, k, v), attend(q, k, v)[0])


def test_rows_of_the_weights_sum_to_one(draw, allowed):
    for mask in (None, allowed):
        weights = attend(*heads(draw), mask)[1]
        torch.testing.assert_close(weights.sum(-1), weights.new_ones(2, 3, 4))


def test_shifting_all_keys_does_not_change_the_weights(draw):
    q, k, v = heads(draw)
    torch.testing.assert_close(attend(q, k + draw(5), v), attend(q, k, v))


def test_shuffling_keys_and_values_does_not_change_the_output(draw):
    q, k, v = heads(draw)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    out, weights = attend(q, k, v)
    torch.testing.assert_close(attend(q, k[..., order, :], v[..., order, :]), (out, weights[..., order]))


def test_the_output_lies_between_the_values(draw):
    q, k, v = heads(draw)
    out = attend(q, k, v)[0]
    assert (out <= v.amax(-2, keepdim=True)).all()
    assert (out >= v.amin(-2, keepdim=True)).all()


@pytest.mark.parametrize("scale", [None, 0.0, 0.7])
def test_gradients_match_finite_differences(draw, scale):
    q, k, v = (x.requires_grad_(True) for x in (draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 3)))
    mask = torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)
    assert torch.autograd.gradcheck(lambda *inputs: attend(*inputs, scale=scale), (q, k, v))
    assert torch.autograd.gradcheck(lambda *inputs: attend(*inputs, mask, scale), (q, k, v))


def test_gradients_of_the_loops_match_finite_differences(draw):
    inputs = tuple(x.requires_grad_(True) for x in (draw(2, 3), draw(4, 3), draw(4, 2)))
    assert torch.autograd.gradcheck(reference.attention_loops, inputs)


def test_the_backward_pass_by_hand():
    """Weights ¾ and ¼, values 1 and 5: the output is 2, and the gradients of the scores are −¾ and +¾."""
    q, k = torch.tensor([[1.0, 0, 0, 0]]), torch.tensor([[2.0, 0, 0, 0], [0, 6, 0, 0]])
    v, weights = torch.tensor([[1.0], [5.0]]), torch.tensor([[0.75, 0.25]])
    dq, dk, dv = reference.attention_backward(q, k, v, weights, torch.ones(1, 1))
    torch.testing.assert_close(dv, torch.tensor([[0.75], [0.25]]))
    torch.testing.assert_close(dq, torch.tensor([[-0.75, 2.25, 0, 0]]))  # (−¾·2, ¾·6) / √4
    torch.testing.assert_close(dk, torch.tensor([[-0.375, 0, 0, 0], [0.375, 0, 0, 0]]))


@pytest.mark.parametrize("masked", [False, True])
def test_the_backward_pass_matches_autograd(draw, allowed, masked):
    allowed[1, 2, 3] = False
    q, k, v = (x.requires_grad_(True) for x in heads(draw))
    dout = draw(2, 3, 4, 7)
    out, weights = attend(q, k, v, allowed if masked else None)
    expected = torch.autograd.grad(out, (q, k, v), dout)
    found = reference.attention_backward(*(x.detach() for x in (q, k, v, weights)), dout)
    torch.testing.assert_close(found, expected)


def test_the_backward_pass_matches_pytorch(draw, allowed):
    q, k, v = (x.requires_grad_(True) for x in heads(draw))
    dout = draw(2, 3, 4, 7)
    expected = torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, attn_mask=allowed), (q, k, v), dout)
    weights = attend(q, k, v, allowed)[1]
    found = reference.attention_backward(*(x.detach() for x in (q, k, v, weights)), dout)
    torch.testing.assert_close(found, expected)


def test_the_gradients_of_the_keys_sum_to_zero(draw):
    """Because shifting all keys changes nothing."""
    q, k, v = heads(draw)
    dk = reference.attention_backward(q, k, v, attend(q, k, v)[1], draw(2, 3, 4, 7))[1]
    torch.testing.assert_close(dk.sum(-2), torch.zeros_like(dk.sum(-2)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_dtype_is_kept(draw, dtype):
    q, k, v = (x.to(dtype) for x in heads(draw))
    out, weights = attend(q, k, v)
    results = out, weights, *reference.attention_backward(q, k, v, weights, out)
    assert {x.dtype for x in (*results, reference.attention_loops(q[0, 0], k[0, 0], v[0, 0]))} == {dtype}
