"""The reference of chapter 10, compared with PyTorch, finite differences and numbers worked out by hand."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from autograder.reference.ch10_engineering_mha import (
    JadoreMHA,
    MultiHeadAttention,
    PackedMHA,
    torch_to_packed,
    varlen_attention,
)


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(10)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng():
        torch.manual_seed(10)
        yield


def twin(module, embed, heads):
    """PyTorch's module with the four projections of a post-norm sub-layer."""
    other = nn.MultiheadAttention(embed, heads, batch_first=True).double().eval()
    layers = (module.W_Q, module.W_K, module.W_V)
    other.load_state_dict(
        {
            "in_proj_weight": torch.cat([layer.weight for layer in layers]),
            "in_proj_bias": torch.cat([layer.bias for layer in layers]),
            "out_proj.weight": module.W_O.weight,
            "out_proj.bias": module.W_O.bias,
        }
    )
    return other


def test_the_post_norm_sublayer_matches_pytorchs_attention_with_residual_and_norm(draw):
    module = MultiHeadAttention(12, 3).double().eval()
    q, k, v = draw(2, 5, 12), draw(2, 7, 12), draw(2, 7, 12)
    mask = torch.ones(5, 7).tril(2)
    out, weights = twin(module, 12, 3)(q, k, v, attn_mask=mask == 0, average_attn_weights=False)
    for given in (mask, mask.expand(2, 5, 7), mask.bool()):
        found, seen = module(q, k, v, given)
        torch.testing.assert_close(found, module.layer_norm(q + out))
        torch.testing.assert_close(seen, weights)


def test_with_a_zero_output_layer_only_the_norm_acts(draw):
    for module in (MultiHeadAttention(12, 3), JadoreMHA(3, 12, 4, 5)):
        module.double().eval()
        last = module.W_O if isinstance(module, MultiHeadAttention) else module.fc
        for weight in last.parameters():
            nn.init.zeros_(weight)
        x = draw(2, 5, 12)
        torch.testing.assert_close(module(x, x, x)[0], F.layer_norm(x, (12,), eps=module.layer_norm.eps))


def test_the_two_sublayers_differ_in_biases_and_eps():
    assert (MultiHeadAttention(12, 3).layer_norm.eps, JadoreMHA(3, 12, 4, 5).layer_norm.eps) == (1e-5, 1e-6)
    assert len(list(MultiHeadAttention(12, 3).parameters())) == 10
    assert len(list(JadoreMHA(3, 12, 4, 5).parameters())) == 6


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("widths", [{}, {"kdim": 10, "vdim": 14}, {"kdim": 12, "vdim": 14}])
def test_converted_weights_give_pytorchs_output(draw, widths, bias):
    theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True, **widths).double().eval()
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    sizes = 12, widths.get("kdim", 12), widths.get("vdim", 12)
    ours = PackedMHA(*sizes, 12, 3, bias=bias).double().eval()
    ours.load_state_dict(torch_to_packed(theirs.state_dict()))
    q, k, v = draw(2, 5, sizes[0]), draw(2, 7, sizes[1]), draw(2, 7, sizes[2])
    keep = draw(2, 3, 5, 7) > -0.5
    keep[..., 0] = True
    torch.testing.assert_close(ours(q, k, v), theirs(q, k, v)[0])
    torch.testing.assert_close(ours(q, k, v, keep), theirs(q, k, v, attn_mask=~keep.flatten(0, 1))[0])


def test_the_state_is_not_changed_and_extra_biases_are_refused():
    state = nn.MultiheadAttention(12, 3).state_dict()
    names = list(state)
    torch_to_packed(state)
    assert list(state) == names
    with pytest.raises(ValueError, match="bias_k"):
        torch_to_packed(nn.MultiheadAttention(12, 3, add_bias_kv=True).state_dict())


def test_packed_and_separate_projections_are_the_same(draw):
    packed, apart = PackedMHA(12, 12, 12, 8, 2).double(), PackedMHA(12, 12, 10, 8, 2).double()
    apart.v_proj = nn.Linear(12, 8).double()
    with torch.no_grad():
        for name, weight, bias in zip(
            "qkv", packed.packed_proj.weight.chunk(3), packed.packed_proj.bias.chunk(3), strict=True
        ):
            apart.get_parameter(f"{name}_proj.weight").copy_(weight)
            apart.get_parameter(f"{name}_proj.bias").copy_(bias)
    apart.out_proj = packed.out_proj
    x = draw(2, 5, 12)
    torch.testing.assert_close(packed(x, x, x), apart(x, x, x))


def test_the_causal_mask_is_lower_right_and_combined_by_and(draw):
    module = PackedMHA(12, 12, 12, 12, 3).double()
    q, k, v = draw(2, 5, 12), draw(2, 7, 12), draw(2, 7, 12)
    past, keep = torch.ones(5, 7).tril(2).bool(), draw(2, 5, 7) > 0
    assert torch.equal(module(q, k, v, is_causal=True), module(q, k, v, past))
    assert torch.equal(module(q, k, v, keep, is_causal=True), module(q, k, v, (keep & past)[:, None]))


def test_a_blind_query_gives_the_bias_of_the_output_layer(draw):
    module = PackedMHA(12, 12, 12, 12, 3).double()
    out = module(draw(2, 5, 12), draw(2, 3, 12), draw(2, 3, 12), is_causal=True)
    torch.testing.assert_close(out[:, :2], module.out_proj.bias.expand(2, 2, 12))
    out.sum().backward()
    assert all(weight.grad.isfinite().all() for weight in module.parameters())


@pytest.mark.parametrize("make", [lambda p: MultiHeadAttention(8, 2, p), lambda p: JadoreMHA(2, 8, 3, 5, p)])
def test_with_everything_dropped_only_the_norm_acts(draw, make):
    module, x = make(1.0).double(), draw(2, 5, 8)
    out, weights = module(x, x, x)
    torch.testing.assert_close(out, F.layer_norm(x, (8,), eps=module.layer_norm.eps))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5, dtype=torch.float64))


def test_evaluation_drops_nothing(draw):
    for module in (MultiHeadAttention(8, 2, 0.5), JadoreMHA(2, 8, 3, 5, 0.5), PackedMHA(8, 8, 8, 8, 2, 0.5)):
        module.double()
        x = draw(2, 5, 8)
        first, second, *resting = (module.train(training)(x, x, x) for training in (True, True, False, False))
        if isinstance(first, tuple):
            first, second, *resting = (value[0] for value in (first, second, *resting))
        assert not torch.equal(first, second)
        assert torch.equal(*resting)


def test_bad_arguments_are_refused():
    for make in (
        lambda: MultiHeadAttention(10, 3),
        lambda: PackedMHA(9, 9, 9, 10, 3),
        lambda: MultiHeadAttention(8, 2, 1.5),
        lambda: JadoreMHA(2, 8, 3, 5, -0.1),
        lambda: PackedMHA(8, 8, 8, 8, 2, 1.5),
    ):
        with pytest.raises(ValueError, match=r"divide|probability"):
            make()


def test_padded_and_concatenated_agree(draw):
    """On its real tokens, a padded batch with a mask gives the same as the concatenated rows."""
    lengths = torch.tensor([5, 0, 2, 6])
    offsets = torch.cat((torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)))
    q, k, v = draw(4, 3, 6, 8), draw(4, 3, 6, 8), draw(4, 3, 6, 8)
    real = torch.arange(6) < lengths[:, None]
    padded = F.scaled_dot_product_attention(q, k, v, real[:, None, None, :])
    rows = [x.transpose(1, 2)[real] for x in (q, k, v, padded)]
    torch.testing.assert_close(varlen_attention(*rows[:3], offsets), rows[3])
    torch.testing.assert_close(varlen_attention(*rows[:3], offsets.int()), rows[3])


def test_gradients_match_finite_differences(draw):
    mask = torch.tensor([[[1, 0, 1], [0, 0, 0]]])
    post = MultiHeadAttention(4, 2).double().eval()
    jadore = JadoreMHA(2, 4, 1, 3).double().eval()
    packed = PackedMHA(4, 4, 4, 6, 2).double()
    for module in (post, jadore, packed):
        inputs = [draw(1, length, 4).requires_grad_() for length in (2, 3, 3)]
        assert torch.autograd.gradcheck(lambda *x, module=module: module(*x, mask != 0), inputs)
    rows = [draw(5, 2, 3).requires_grad_() for _ in range(3)]
    assert torch.autograd.gradcheck(lambda *x: varlen_attention(*x, torch.tensor([0, 2, 2, 5])), rows)
