"""The reference of chapter 1, compared with PyTorch, with counted operations and with numbers worked out by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from autograder.reference import ch01_from_recurrence_to_attention as reference


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(1)
    return lambda *shape, dtype=torch.float64: torch.randn(*shape, generator=generator, dtype=dtype)


def states(draw):
    return draw(2, 3, 5), draw(2, 4, 6), draw(7, 5), draw(7, 6), draw(7)


def test_additive_scores_by_hand():
    s, h = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    scores = reference.additive_scores(s, h, torch.eye(2), torch.eye(2), torch.tensor([1.0, -1.0]))
    torch.testing.assert_close(scores, torch.tensor([[math.tanh(2.0), 0.0]]))


def test_additive_scores_match_two_linear_layers_over_concatenated_states(draw):
    s, h, Wa, Ua, va = states(draw)
    inner, outer = nn.Linear(11, 7, bias=False).double(), nn.Linear(7, 1, bias=False).double()
    inner.weight.data, outer.weight.data = torch.cat([Wa, Ua], 1), va[None]
    for b in range(2):
        for i in range(3):
            for j in range(4):
                one = outer(torch.tanh(inner(torch.cat([s[b, i], h[b, j]]))))[0]
                torch.testing.assert_close(reference.additive_scores(s, h, Wa, Ua, va)[b, i, j], one)


def test_additive_scores_are_bounded_by_the_l1_norm_of_va(draw):
    s, h, Wa, Ua, va = states(draw)
    assert reference.additive_scores(1e6 * s, h, Wa, Ua, va).abs().max() <= va.abs().sum() * (1 + 1e-12)


def test_without_tanh_every_query_gets_the_same_weights(draw):
    s, h, Wa, Ua, va = states(draw)
    linear = (s @ Wa.T @ va)[..., None] + (h @ Ua.T @ va)[..., None, :]
    weights = linear.softmax(-1)
    torch.testing.assert_close(weights, weights[:, :1].expand_as(weights))
    weights = reference.additive_scores(s, h, Wa, Ua, va).softmax(-1)
    assert not torch.allclose(weights, weights[:, :1].expand_as(weights))


def test_gradients_match_finite_differences(draw):
    given = [x.requires_grad_() for x in states(draw)]
    assert torch.autograd.gradcheck(reference.additive_scores, given)
    given = [x.requires_grad_() for x in (draw(2, 3, 5), draw(2, 4, 5), draw(2, 4, 6))]
    assert torch.autograd.gradcheck(lambda *memory: reference.soft_lookup(*memory, 1.5), given)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 3.0])
def test_a_soft_lookup_matches_pytorchs_attention_with_beta_as_scale(draw, beta):
    q, k, v = draw(2, 3, 5), draw(2, 4, 5), draw(2, 4, 6)
    torch.testing.assert_close(
        reference.soft_lookup(q, k, v, beta), F.scaled_dot_product_attention(q, k, v, scale=beta)
    )


@pytest.mark.parametrize("beta", [0.0, 1.0, 4.0, 300.0])
def test_a_lookup_by_hand(beta):
    q, keys = torch.ones(1, 1, dtype=torch.float64), torch.tensor([[2.0], [1.0], [0.0]], dtype=torch.float64)
    values = torch.tensor([[10.0], [20.0], [40.0]], dtype=torch.float64)
    best, second, third = math.exp(2 * beta), math.exp(beta), 1.0
    by_hand = (10 * best + 20 * second + 40 * third) / (best + second + third)
    assert reference.soft_lookup(q, keys, values, beta).item() == pytest.approx(by_hand, rel=1e-12)


def test_a_large_beta_gives_the_hard_lookup(draw):
    q, keys, values = draw(3, 5), draw(4, 5), draw(4, 6)
    torch.testing.assert_close(reference.soft_lookup(q, keys, values, 1e9), values[(q @ keys.T).argmax(-1)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_the_dtype_is_kept(draw, dtype):
    given = [x.to(dtype) for x in states(draw)]
    assert reference.additive_scores(*given).dtype == dtype
    assert reference.soft_lookup(*(x.to(dtype) for x in (draw(3, 5), draw(4, 5), draw(4, 6)))).dtype == dtype


def counted(layer, *inputs):
    with FlopCounterMode(display=False) as counter:
        layer(*inputs)
    return counter.get_total_flops() // 2  # a multiplication and an addition each


def test_the_costs_match_counted_operations_up_to_a_constant():
    n, d, k = 24, 16, 3
    x = torch.randn(1, n, d)
    cost = {kind: reference.path_and_cost(kind, n, d, k)["multiplies"] for kind in ("attention", "recurrent", "conv")}
    assert counted(lambda x: torch.softmax(x @ x.mT, -1) @ x, x) == 2 * cost["attention"]  # scores and mix
    state, recurrence = torch.zeros(1, d), torch.randn(d, d)

    def recur(x):
        h = state
        for t in range(n):
            h = torch.tanh(h @ recurrence + x[:, t])

    assert counted(recur, x) == cost["recurrent"]
    assert counted(nn.Conv1d(d, d, k, padding=k // 2), x.mT) == cost["conv"]


@pytest.mark.parametrize(
    ("n", "k", "path"),
    [(1, 3, 0), (2, 3, 1), (3, 3, 1), (4, 3, 2), (124, 5, 3), (125, 5, 3), (126, 5, 4), (4096, 2, 12)],
)
def test_the_layers_of_a_convolution_are_counted_exactly(n, k, path):
    assert reference.path_and_cost("conv", n, 8, k)["path"] == path


def test_dilated_convolutions_need_that_many_layers():
    n, k = 27, 3
    reached = torch.zeros(1, 1, n)
    reached[..., 0] = 1.0
    for layer in range(reference.path_and_cost("conv", n, 1, k)["path"]):
        assert reached[0, 0, -1] == 0
        dilation = k**layer
        reached = F.conv1d(F.pad(reached, ((k - 1) * dilation, 0)), torch.ones(1, 1, k), dilation=dilation)
    assert reached[0, 0, -1] > 0


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="pooling"):
        reference.path_and_cost("pooling", 4, 5)
