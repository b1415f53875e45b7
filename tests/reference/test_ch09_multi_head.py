"""The reference of chapter 9, compared with PyTorch, finite differences and numbers worked out by hand."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from autograder.reference.ch09_multi_head import (
    SequenceFirstMHA,
    attend,
    merge_heads,
    multi_head_attention,
    split_heads,
)


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(9)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.fixture
def tensors(draw):
    """Two sequences, three heads, d_k = 4, d_v = 6."""
    return (draw(2, 5, 10), draw(2, 7, 10), draw(2, 7, 10), draw(12, 10), draw(12, 10), draw(18, 10), draw(8, 18))


def like_torch(module):
    """PyTorch's module with the same weights; its inputs are sequence first too."""
    weights = [layer.weight for layer in (module.W_q, module.W_k, module.W_v)]
    twin = nn.MultiheadAttention(weights[0].shape[0], module.num_heads, bias=module.W_q.bias is not None).double()
    with torch.no_grad():
        twin.in_proj_weight.copy_(torch.cat(weights))
        twin.out_proj.weight.copy_(module.W_o.weight)
        if module.W_q.bias is not None:
            twin.in_proj_bias.copy_(torch.cat([layer.bias for layer in (module.W_q, module.W_k, module.W_v)]))
            twin.out_proj.bias.copy_(module.W_o.bias)
    return twin


def seeded(*sizes, **options):
    with torch.random.fork_rng():
        torch.manual_seed(9)
        return SequenceFirstMHA(*sizes, **options).double()


@pytest.fixture
def module():
    return seeded(12, 3)


def test_heads_are_neighbouring_columns():
    x = torch.tensor([[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]])
    assert split_heads(x, 2).tolist() == [[[[1, 2], [5, 6], [9, 10]], [[3, 4], [7, 8], [11, 12]]]]


def test_merging_undoes_splitting(draw):
    x = draw(2, 5, 12)
    for heads in (1, 2, 3, 4, 6, 12):
        assert torch.equal(merge_heads(split_heads(x, heads)), x)


@pytest.mark.parametrize("heads", [5, 7, 24])
def test_heads_that_do_not_divide_are_refused(draw, tensors, heads):
    with pytest.raises(ValueError, match="do not divide"):
        split_heads(draw(2, 3, 12), heads)
    with pytest.raises(ValueError, match="do not divide"):
        multi_head_attention(*tensors, heads)
    with pytest.raises(ValueError, match="do not divide"):
        SequenceFirstMHA(12, heads)


def test_two_heads_by_hand():
    """One query (1, 0) and two keys; head 0 sees the first feature, head 1 the second."""
    xq, xk = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[2.0, 5.0], [0.0, 7.0]]])
    one = torch.eye(2)
    out, weights = multi_head_attention(xq, xk, xk, one, one, one, one, 2)
    p = torch.sigmoid(torch.tensor(2.0)).item()
    assert weights.flatten().tolist() == pytest.approx([p, 1 - p, 0.5, 0.5])
    assert out.flatten().tolist() == pytest.approx([2 * p, 6.0])


def test_attention_matches_pytorch(draw):
    q, k, v = draw(2, 3, 5, 4), draw(2, 3, 7, 4), draw(2, 3, 7, 6)
    mask = draw(2, 3, 5, 7) > -0.5
    mask[1, :, 2] = False
    torch.testing.assert_close(attend(q, k, v)[0], F.scaled_dot_product_attention(q, k, v))
    torch.testing.assert_close(attend(q, k, v, mask)[0], F.scaled_dot_product_attention(q, k, v, mask))


def test_a_loop_over_the_heads_gives_the_same_result(tensors):
    xq, xk, xv, Wq, Wk, Wv, Wo = tensors
    out, weights = multi_head_attention(*tensors, 3)
    total = torch.zeros_like(out)
    for h, (q, k, v, o) in enumerate(zip(Wq.chunk(3), Wk.chunk(3), Wv.chunk(3), Wo.chunk(3, 1), strict=True)):
        alone = torch.softmax((xq @ q.T) @ (xk @ k.T).mT / 2, -1)
        torch.testing.assert_close(weights[:, h], alone)
        total += alone @ (xv @ v.T) @ o.T
    torch.testing.assert_close(out, total)


def test_a_blind_query_has_head_outputs_of_zero(tensors):
    mask = torch.ones(2, 3, 5, 7, dtype=torch.bool)
    mask[1, :, 2] = False
    out, weights = multi_head_attention(*tensors, 3, mask)
    assert torch.equal(out[1, 2], torch.zeros(8, dtype=torch.float64))
    assert torch.equal(weights.sum(-1) == 0, ~mask.any(-1))


def test_gradients_match_finite_differences(draw):
    shapes = ((1, 2, 3), (1, 3, 3), (1, 3, 3), (4, 3), (4, 3), (2, 3), (2, 2))
    mask = torch.tensor([[[True, False, True], [False] * 3], [[True] * 3, [False, True, True]]])
    inputs = [draw(*shape).requires_grad_() for shape in shapes]
    assert torch.autograd.gradcheck(lambda *x: multi_head_attention(*x, 2, mask), inputs)


@pytest.mark.parametrize("bias", [True, False])
def test_the_module_matches_pytorch(draw, bias):
    module = seeded(12, 3, bias=bias)
    query, key, value = draw(5, 2, 12), draw(7, 2, 12), draw(7, 2, 12)
    torch.testing.assert_close(module(query, key, value), like_torch(module)(query, key, value)[0])
    assert len(list(module.parameters())) == (8 if bias else 4)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_converted_masks_match_pytorch(draw, module, dtype):
    query, key, value = draw(5, 2, 12), draw(7, 2, 12), draw(7, 2, 12)
    padding = torch.tensor([[False] * 5 + [True] * 2, [False, True] * 3 + [False]])
    may_look = torch.ones(5, 7).tril(2).bool()
    expected, _ = like_torch(module)(query, key, value, key_padding_mask=padding, attn_mask=~may_look)
    found = module(query, key, value, key_padding_mask=padding, attn_mask=may_look.to(dtype))
    torch.testing.assert_close(found, expected)
    for masks, wanted in (
        ({"key_padding_mask": padding}, {"key_padding_mask": padding}),
        ({"attn_mask": may_look.to(dtype)}, {"attn_mask": ~may_look}),
    ):
        torch.testing.assert_close(
            module(query, key, value, **masks), like_torch(module)(query, key, value, **wanted)[0]
        )


def test_a_fully_padded_sample_gives_the_bias_of_the_output_layer(draw, module):
    padding = torch.tensor([[False] * 7, [True] * 7])
    out = module(draw(5, 2, 12), draw(7, 2, 12), draw(7, 2, 12), key_padding_mask=padding)
    assert torch.equal(out[:, 1], module.W_o.bias.expand(5, 12))
    out.sum().backward()
    assert all(weight.grad.isfinite().all() for weight in module.parameters())


def test_the_key_bias_has_no_effect(draw, module):
    out = module(draw(5, 2, 12), draw(7, 2, 12), draw(7, 2, 12))
    out.square().sum().backward()
    assert module.W_k.bias.grad.abs().max() < 1e-12 < module.W_q.bias.grad.abs().max()


def test_gradients_of_the_module_match_finite_differences(draw):
    small = seeded(4, 2)
    masks = (torch.tensor([[False, True, True], [True] * 3]), torch.tensor([[1, 0, 1], [0, 1, 1]]))
    inputs = [draw(length, 2, 4).requires_grad_() for length in (2, 3, 3)]
    assert torch.autograd.gradcheck(lambda *x: small(*x, *masks), inputs)


def test_changing_one_token_affects_only_its_own_sample(draw, module):
    x = draw(5, 2, 12)
    edited = x.clone()
    edited[3, 0] += 1
    moved = (module(x, edited, edited) - module(x, x, x)).abs().amax(-1) > 1e-9
    assert moved[:, 0].all()
    assert not moved[:, 1].any()
