"""The reference of chapter 8, compared with PyTorch where both agree, and with numbers worked out by hand."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.reference import ch08_engineering_sdpa as reference


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(8)
    return lambda *shape, dtype=torch.float64: torch.randn(*shape, generator=generator, dtype=dtype)


def heads(draw):
    return draw(2, 3, 4, 5), draw(2, 3, 6, 5), draw(2, 3, 6, 7)


def allowed(*shape):
    """A mask in which every query may see some keys but not all."""
    mask = torch.rand(*shape, generator=torch.Generator().manual_seed(9)) < 0.6
    mask[..., 0], mask[..., -1] = True, False
    return mask


FORMS = [(4, 6), (1, 6), (3, 1, 6), (2, 1, 1, 6), (2, 1, 4, 6), (2, 3, 4, 6)]


@pytest.mark.parametrize("shape", FORMS)
def test_bool_masks_of_every_shape_agree_with_pytorch(draw, shape):
    q, k, v = heads(draw)
    mask = allowed(*shape)
    torch.testing.assert_close(reference.sdpa(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


@pytest.mark.parametrize("shape", FORMS)
def test_float_masks_of_every_shape_agree_with_pytorch(draw, shape):
    q, k, v = heads(draw)
    mask = draw(*shape).masked_fill(~allowed(*shape), -torch.inf)
    torch.testing.assert_close(reference.sdpa(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


@pytest.mark.parametrize("lengths", [(5, 5), (3, 6), (6, 3), (1, 4)])
def test_the_causal_flag_agrees_with_pytorch(draw, lengths):
    L, S = lengths
    q, k, v = draw(2, 3, L, 4), draw(2, 3, S, 4), draw(2, 3, S, 4)
    torch.testing.assert_close(
        reference.sdpa(q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, is_causal=True)
    )


@pytest.mark.parametrize("scale", [None, 0.0, 0.3, torch.tensor(0.7)])
def test_the_scale_agrees_with_pytorch(draw, scale):
    q, k, v = heads(draw)
    torch.testing.assert_close(
        reference.sdpa(q, k, v, scale=scale), F.scaled_dot_product_attention(q, k, v, scale=scale)
    )


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_shared_kv_heads_agree_with_pytorch(draw, groups):
    q, k, v = draw(2, 6, 5, 4), draw(2, groups, 7, 4), draw(2, groups, 7, 3)
    torch.testing.assert_close(
        reference.sdpa(q, k, v, enable_gqa=True), F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    )
    expanded = reference.sdpa(q, reference.expand_kv(k, 6), reference.expand_kv(v, 6))
    torch.testing.assert_close(reference.sdpa(q, k, v, enable_gqa=True), expanded)


def test_a_blind_query_agrees_with_pytorch_and_is_exactly_zero(draw):
    q, k, v = heads(draw)
    mask = allowed(4, 6)
    mask[1] = False
    bias = torch.zeros(4, 6, dtype=torch.float64).masked_fill(~mask, -torch.inf)
    for form in (mask, bias):
        out = reference.sdpa(q, k, v, form)
        torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, attn_mask=form))
        assert not out[..., 1, :].any()


def test_a_mask_together_with_the_causal_flag_is_refused(draw):
    with pytest.raises(ValueError, match="not both"):
        reference.sdpa(*heads(draw), attn_mask=allowed(4, 6), is_causal=True)


@pytest.mark.parametrize("call", [reference.expand_kv, lambda x, n: reference.sdpa(x[:, :1].repeat(1, n, 1, 1), x, x, enable_gqa=True)])  # fmt: skip
def test_heads_that_do_not_divide_are_refused(draw, call):
    with pytest.raises(ValueError, match="do not divide"):
        call(draw(2, 4, 5, 3), 6)


def test_neighbouring_heads_share_keys_and_values():
    x = torch.arange(3).view(1, 3, 1, 1)
    assert reference.expand_kv(x, 6).flatten().tolist() == [0, 0, 1, 1, 2, 2]


def test_the_module_with_temperature_sqrt_d_matches_pytorchs_function(draw):
    q, k, v = heads(draw)
    mask = allowed(2, 1, 4, 6)
    module = reference.ScaledDotProductAttention(math.sqrt(5), 0.5).eval()
    out, attn = module(q, k, v, mask.long())
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
    torch.testing.assert_close(attn.sum(-1), torch.ones(2, 3, 4, dtype=torch.float64))
    assert not attn[~mask.expand_as(attn)].any()


def test_weights_by_hand():
    q = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    k = torch.tensor([[2.0, 9.0], [1.0, 9.0]], dtype=torch.float64)  # products 4 and 2, divided by 2: scores 2 and 1
    _, attn = reference.ScaledDotProductAttention(2.0)(q, k, k)
    share = math.e / (math.e + 1)
    torch.testing.assert_close(attn, torch.tensor([[share, 1 - share]], dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_blind_query_gets_zeros_in_every_dtype(draw, dtype):
    q, k, v = (x.to(dtype) for x in heads(draw))
    mask = allowed(2, 3, 4, 6)
    mask[1, 2, 3] = False
    out, attn = reference.ScaledDotProductAttention(2.0, 0.0)(q, k, v, mask)
    assert out.dtype == attn.dtype == dtype
    assert out.isfinite().all()
    assert not out[1, 2, 3].any()
    assert not attn[1, 2, 3].any()


def test_dropout_affects_neither_the_returned_weights_nor_evaluation(draw):
    q, k, _ = heads(draw)
    values = torch.eye(6, dtype=torch.float64).expand(2, 3, 6, 6)
    module = reference.ScaledDotProductAttention(2.0, 0.5)
    torch.manual_seed(0)
    out, attn = module.train()(q, k, values)
    kept = out != 0
    assert 0.2 < kept.double().mean() < 0.8
    torch.testing.assert_close(out, attn * kept / 0.5)
    torch.testing.assert_close(attn.sum(-1), torch.ones(2, 3, 4, dtype=torch.float64))
    torch.testing.assert_close(module.eval()(q, k, values)[0], attn)


def test_dropout_of_the_function_is_always_active(draw):
    q, k, _ = heads(draw)
    values = torch.eye(6, dtype=torch.float64).expand(2, 3, 6, 6)
    torch.manual_seed(0)
    out = reference.sdpa(q, k, values, dropout_p=0.5)
    kept = out != 0
    assert 0.2 < kept.double().mean() < 0.8
    torch.testing.assert_close(out, reference.sdpa(q, k, values) * kept / 0.5)


def test_gradients_match_finite_differences(draw):
    q, k, v, bias = (x.requires_grad_() for x in (draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 2), draw(3, 5)))
    blind = allowed(3, 5)
    blind[1] = False
    assert torch.autograd.gradcheck(reference.sdpa, (q, k, v, bias))
    assert torch.autograd.gradcheck(lambda *x: reference.sdpa(*x, blind), (q, k, v))
    hard = torch.zeros(3, 5, dtype=torch.float64).masked_fill(~blind, -torch.inf)
    assert torch.autograd.gradcheck(lambda *x: reference.sdpa(*x, hard), (q, k, v))
    module = reference.ScaledDotProductAttention(2.0, 0.0)
    assert torch.autograd.gradcheck(lambda *x: module(*x, blind), (q, k, v))
