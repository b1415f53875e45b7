"""The reference of chapter 2, compared with PyTorch's layers, and the facts that the chapter states about it."""

import pytest
import torch
from torch import nn

from autograder.reference import ch02_query_key_value as reference


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(2)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def attention(q, k, v):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


def test_a_projection_by_hand():
    x, W, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), torch.arange(10.0, 40, 10)
    q, k, v = reference.project_qkv(x, W, 2 * W, W, bv=b)
    assert q.tolist() == [[1, 2, 3]]
    assert k.tolist() == [[2, 4, 6]]
    assert v.tolist() == [[11, 22, 33]]


@pytest.mark.parametrize("bias", [True, False])
def test_projections_match_linear_layers(draw, bias):
    layers = [nn.Linear(6, out, bias=bias, dtype=torch.float64) for out in (4, 4, 7)]
    x = draw(2, 3, 5, 6)
    found = reference.project_qkv(x, *(layer.weight for layer in layers), *(layer.bias for layer in layers))
    for ours, layer in zip(found, layers, strict=True):
        torch.testing.assert_close(ours, layer(x))


def test_the_projections_match_multihead_attention(draw):
    theirs = nn.MultiheadAttention(6, 1, batch_first=True, dtype=torch.float64)
    nn.init.normal_(theirs.in_proj_bias)
    x = draw(2, 5, 6)
    q, k, v = reference.project_qkv(x, *theirs.in_proj_weight.chunk(3), *theirs.in_proj_bias.chunk(3))
    torch.testing.assert_close(theirs.out_proj(attention(q, k, v)), theirs(x, x, x)[0])


def test_projected_attention_is_equivariant_and_fixed_mixing_is_not(draw):
    x, weights, M, order = draw(5, 6), (draw(4, 6), draw(4, 6), draw(7, 6)), draw(5, 5), torch.tensor([3, 0, 4, 1, 2])
    straight, reordered = (attention(*reference.project_qkv(y, *weights)) for y in (x, x[order]))
    torch.testing.assert_close(reordered, straight[order])
    assert (reference.fixed_mixing(x[order], M) - reference.fixed_mixing(x, M)[order]).abs().max() > 0.1


def test_fixed_mixing_is_linear_in_the_tokens_and_attention_is_not(draw):
    x, y, M, weights = draw(5, 6), draw(5, 6), draw(5, 5), (draw(4, 6), draw(4, 6), draw(7, 6))
    torch.testing.assert_close(
        reference.fixed_mixing(x + y, M), reference.fixed_mixing(x, M) + reference.fixed_mixing(y, M)
    )
    together, x_alone, y_alone = (attention(*reference.project_qkv(z, *weights)) for z in (x + y, x, y))
    assert (together - x_alone - y_alone).abs().max() > 0.1


def test_the_key_bias_has_no_effect(draw):
    x, weights = draw(5, 6), (draw(4, 6), draw(4, 6), draw(7, 6))
    biases = [draw(4).requires_grad_(), draw(4).requires_grad_(), draw(7).requires_grad_()]
    out = attention(*reference.project_qkv(x, *weights, *biases))
    out.square().sum().backward()
    assert biases[0].grad.abs().max() > 1e-3
    assert biases[1].grad.abs().max() < 1e-12
    without = attention(*reference.project_qkv(x, *weights, bq=biases[0], bv=biases[2]))
    torch.testing.assert_close(out, without)


def test_gradients_match_finite_differences(draw):
    args = [draw(*shape).requires_grad_() for shape in [(2, 3, 6), (4, 6), (4, 6), (5, 6), (4,), (4,), (5,)]]
    assert torch.autograd.gradcheck(reference.project_qkv, args)
    assert torch.autograd.gradcheck(reference.fixed_mixing, [args[0], draw(3, 3).requires_grad_()])


def test_counts_match_real_layers():
    def learned(module):
        return sum(parameter.numel() for parameter in module.parameters())

    assert reference.count_parameters("multi_head", 5, 12) == learned(nn.MultiheadAttention(12, 3, bias=False))
    assert reference.count_parameters("qkv", 5, 12) == 3 * learned(nn.Linear(12, 12, bias=False))
    assert reference.count_parameters("fixed", 5, 12) == learned(nn.Linear(5, 5, bias=False))
    assert reference.count_parameters("fixed", 886, 512) < reference.count_parameters("qkv", 886, 512)
    assert reference.count_parameters("fixed", 887, 512) > reference.count_parameters("qkv", 887, 512)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'recurrent'"):
        reference.count_parameters("recurrent", 3, 4)
