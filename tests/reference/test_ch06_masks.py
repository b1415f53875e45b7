"""The reference of chapter 6, compared with PyTorch where both agree, and with numbers worked out by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.bias import causal_lower_right

from autograder.reference import ch06_masks as reference

Y, N = True, False


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(6)
    return lambda *shape, dtype=torch.float64: torch.randn(*shape, generator=generator, dtype=dtype)


@pytest.fixture
def allowed():
    """A mask [2, 3, 4, 6] in which every query may see some keys but not all."""
    mask = torch.rand(2, 3, 4, 6, generator=torch.Generator().manual_seed(7)) < 0.6
    mask[..., 0], mask[..., 5] = True, False
    return mask


def heads(draw):
    return draw(2, 3, 4, 5), draw(2, 3, 6, 5), draw(2, 3, 6, 7)


@pytest.mark.parametrize(
    ("lengths", "table"),
    [
        ((3,), [[Y, N, N], [Y, Y, N], [Y, Y, Y]]),
        ((2, 4), [[Y, Y, Y, N], [Y, Y, Y, Y]]),
        ((3, 2), [[N, N], [Y, N], [Y, Y]]),
        ((1, 5), [[Y, Y, Y, Y, Y]]),
    ],
)
def test_causal_masks_by_hand(lengths, table):
    assert torch.equal(reference.causal_mask(*lengths), torch.tensor(table))


def test_a_square_causal_mask_matches_pytorchs_additive_mask():
    ours = reference.to_additive(reference.causal_mask(5))
    assert torch.equal(ours, nn.Transformer.generate_square_subsequent_mask(5))


def test_a_causal_mask_matches_pytorchs_lower_right_bias(draw):
    q, k, v = heads(draw)
    out, _ = reference.masked_attention(q, k, v, reference.causal_mask(4, 6))
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(4, 6)))


def test_one_step_with_a_cache_gives_the_last_row_of_the_full_output(draw):
    x = draw(2, 5, 3)
    whole, _ = reference.masked_attention(x, x, x, reference.causal_mask(5))
    step, _ = reference.masked_attention(x[:, 4:], x, x, reference.causal_mask(1, 5))
    torch.testing.assert_close(step, whole[:, 4:])


def test_a_padding_mask_by_hand():
    mask = reference.padding_mask(torch.tensor([3, 0, 4], dtype=torch.int32), 4)
    assert mask.shape == (3, 1, 1, 4)
    assert torch.equal(mask[:, 0, 0], torch.tensor([[Y, Y, Y, N], [N, N, N, N], [Y, Y, Y, Y]]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_the_bias_of_a_mask_is_its_logarithm(allowed, dtype):
    bias = reference.to_additive(allowed, dtype)
    assert bias.dtype == dtype
    assert torch.equal(bias, allowed.to(dtype).log())


def test_an_additive_mask_converts_back_to_the_same_mask(allowed):
    assert torch.equal(reference.adapt_mask(reference.to_additive(allowed), "additive"), allowed)


def test_the_adapter_reads_each_convention_as_pytorch_does(draw, allowed):
    q, k, v = heads(draw)
    bias = reference.to_additive(allowed, torch.float64)
    for mask, source in ((allowed, "sdpa_bool"), (bias, "additive")):
        out, _ = reference.masked_attention(q, k, v, reference.adapt_mask(mask, source))
        torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float64])
def test_one_means_keep_in_every_dtype(allowed, dtype):
    assert torch.equal(reference.adapt_mask(allowed.to(dtype), "keep_01"), allowed)


def test_the_conventions_by_hand():
    drop, bias = torch.tensor([[Y, N]]), torch.tensor([[-math.inf, 0.0]])
    for mask, source in ((drop, "nn_mha_bool"), (bias, "additive"), (~drop, "sdpa_bool"), ((~drop).int(), "keep_01")):
        assert reference.adapt_mask(mask, source).tolist() == [[N, Y]]
    assert reference.adapt_mask(drop, "key_padding").tolist() == [[[[N, Y]]]]


def test_an_unknown_convention_is_refused():
    with pytest.raises(ValueError, match="padding"):
        reference.adapt_mask(torch.tensor([Y]), "padding")


def attend_by_module(module, x, mask):
    """The same layer written with the reference: its own weights, our mask."""
    q, k, v = F.linear(x, module.in_proj_weight, module.in_proj_bias).chunk(3, -1)
    q, k, v = (y.unflatten(-1, (module.num_heads, -1)).transpose(1, 2) for y in (q, k, v))
    out, weights = reference.masked_attention(q, k, v, mask)
    return module.out_proj(out.transpose(1, 2).flatten(2)), weights


def test_the_adapter_reads_masks_as_multihead_attention_does(draw):
    torch.manual_seed(8)
    module, x = nn.MultiheadAttention(6, 3, batch_first=True, dtype=torch.float64), draw(2, 5, 6)
    future = ~reference.causal_mask(5)
    padding = ~reference.padding_mask(torch.tensor([4, 2]), 5)[:, 0, 0]
    wanted = module(x, x, x, attn_mask=future, key_padding_mask=padding, average_attn_weights=False)
    mask = reference.adapt_mask(future, "nn_mha_bool") & reference.adapt_mask(padding, "key_padding")
    torch.testing.assert_close(attend_by_module(module, x, mask), wanted)


def test_without_forbidden_keys_it_is_plain_attention(draw):
    q, k, v = heads(draw)
    out, weights = reference.masked_attention(q, k, v, torch.ones(4, 6, dtype=torch.bool))
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v))
    torch.testing.assert_close(weights, torch.softmax(q @ k.mT / math.sqrt(5), -1))


def test_weights_by_hand():
    q = torch.tensor([[2.0, 0.0, 0.0, 0.0]], dtype=torch.float64)  # divided by √4: scores 2, 1, 0
    k = torch.tensor([[2.0, 9, 9, 9], [1, 9, 9, 9], [0, 9, 9, 9]], dtype=torch.float64)
    v = torch.tensor([[1.0], [100.0], [0.0]], dtype=torch.float64)
    out, weights = reference.masked_attention(q, k, v, torch.tensor([[Y, N, Y]]))
    share = math.e**2 / (math.e**2 + 1)
    torch.testing.assert_close(weights, torch.tensor([[share, 0.0, 1 - share]], dtype=torch.float64))
    assert out.item() == pytest.approx(share)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_blind_query_gets_exactly_zero(draw, allowed, dtype):
    q, k, v = (x.to(dtype) for x in heads(draw))
    allowed[1, 2, 3] = False
    out, weights = reference.masked_attention(q, k, v, allowed)
    assert out.dtype == weights.dtype == dtype
    assert out.isfinite().all()
    assert not out[1, 2, 3].any()
    assert not weights[1, 2, 3].any()


def test_blind_queries_agree_with_pytorch(draw, allowed):
    q, k, v = heads(draw)
    allowed[0, 1, 2] = False
    out, _ = reference.masked_attention(q, k, v, allowed)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, attn_mask=allowed))


def test_every_row_sums_to_one_or_zero(draw, allowed):
    allowed[0, 0, 0] = False
    _, weights = reference.masked_attention(*heads(draw), allowed)
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).double())
    assert not weights[~allowed].any()


def test_gradients_match_finite_differences_also_for_blind_queries(draw, allowed):
    allowed[0, 0, 1] = False
    inputs = [x[0, 0].clone().requires_grad_() for x in heads(draw)]
    assert torch.autograd.gradcheck(lambda q, k, v: reference.masked_attention(q, k, v, allowed[0, 0]), inputs)


def test_forbidden_keys_and_blind_queries_get_no_gradient(draw, allowed):
    q, k, v = (x.requires_grad_() for x in heads(draw))
    allowed[1, 0, 2] = False
    out, weights = reference.masked_attention(q, k, v, allowed)
    (out.square().sum() + weights.square().sum()).backward()
    assert not k.grad[..., 5, :].any()
    assert not v.grad[..., 5, :].any()
    assert not q.grad[1, 0, 2].any()
    assert q.grad[1, 0, 1].any()


def test_a_huge_forbidden_score_changes_nothing(draw, allowed):
    q, k, v = heads(draw)
    before = reference.masked_attention(q, k, v, allowed)
    k[..., 5, :] *= 1e6
    v[..., 5, :] *= 1e6
    after = reference.masked_attention(q, k, v, allowed)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 6), (2, 1, 1, 6), (1, 3, 4, 1), (2, 1, 4, 6)])
def test_a_mask_is_broadcast(draw, allowed, shape):
    q, k, v = heads(draw)
    start = [slice(0, n) for n in (1,) * (4 - len(shape)) + shape]
    mask = allowed[tuple(start)].reshape(shape)
    torch.testing.assert_close(
        reference.masked_attention(q, k, v, mask), reference.masked_attention(q, k, v, mask.expand(2, 3, 4, 6))
    )
