"""The reference of chapter 11, compared with PyTorch's own layers and finite differences."""

import pytest
import torch
from torch import nn

from autograder.reference.ch11_self_cross_causal import CrossAttention, DecoderBlock, EncoderBlock


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(11)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def seeded(kind, *sizes):
    with torch.random.fork_rng():
        torch.manual_seed(11)
        module = kind(*sizes).double()
        for weight in module.parameters():
            nn.init.normal_(weight, std=0.4)
        return module


def copy_attention(theirs, ours):
    layers = ours.q_proj, ours.k_proj, ours.v_proj
    theirs.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
    theirs.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())


def like_torch(ours):
    """PyTorch's layer of the same kind, with the same parameters."""
    options = {"batch_first": True, "dtype": torch.float64}
    width, heads = ours.attn.q_proj.in_features, ours.attn.n_heads
    decoder = isinstance(ours, DecoderBlock)
    kind = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
    theirs = kind(width, heads, ours.ffn[0].out_features, 0.0, "gelu", norm_first=True, **options)
    pairs = [(theirs.linear1, ours.ffn[0]), (theirs.linear2, ours.ffn[2]), (theirs.norm1, ours.norm1)]
    pairs += [(theirs.norm2, ours.norm_cross), (theirs.norm3, ours.norm2)] if decoder else [(theirs.norm2, ours.norm2)]
    with torch.no_grad():
        copy_attention(theirs.self_attn, ours.attn)
        if decoder:
            copy_attention(theirs.multihead_attn, ours.cross_attn)
        for mine, source in pairs:
            mine.load_state_dict(source.state_dict())
    return theirs


def triangle(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def test_cross_attention_matches_pytorch(draw):
    ours, x, memory = seeded(CrossAttention, 12, 3), draw(2, 5, 12), draw(2, 7, 12)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        copy_attention(theirs, ours)
    torch.testing.assert_close(ours(x, memory), theirs(x, memory, memory)[0])
    mask, real = triangle(7)[2:], torch.tensor([[True] * 7, [True] * 3 + [False] * 4])
    found = ours(x, memory, mask & real[:, None, None])
    torch.testing.assert_close(found, theirs(x, memory, memory, key_padding_mask=~real, attn_mask=~mask)[0])


def test_the_encoder_block_matches_pytorchs_pre_ln_layer(draw):
    block, x = seeded(EncoderBlock, 12, 3, 10), draw(2, 5, 12)
    torch.testing.assert_close(block(x), like_torch(block)(x))
    torch.testing.assert_close(block(x, triangle(5)), like_torch(block)(x, src_mask=~triangle(5)))


def test_the_decoder_block_matches_pytorchs_pre_ln_layer(draw):
    block, x, memory = seeded(DecoderBlock, 12, 3, 10), draw(2, 5, 12), draw(2, 7, 12)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    torch.testing.assert_close(block(x, memory), like_torch(block)(x, memory))
    found = block(x, memory, triangle(5), real[:, None, None])
    expected = like_torch(block)(x, memory, tgt_mask=~triangle(5), memory_key_padding_mask=~real)
    torch.testing.assert_close(found, expected)


def test_self_attention_returns_one_tensor(draw):
    x = draw(2, 5, 12)
    out = seeded(CrossAttention, 12, 3)(x, x)
    assert isinstance(out, torch.Tensor)
    assert out.shape == x.shape


@pytest.mark.parametrize("heads", [5, 7, 24])
def test_heads_that_do_not_divide_are_refused(heads):
    for kind, sizes in ((CrossAttention, ()), (EncoderBlock, (10,)), (DecoderBlock, (10,))):
        with pytest.raises(ValueError, match="do not divide"):
            kind(12, heads, *sizes)


def test_the_order_of_the_memory_does_not_matter(draw):
    block, x, memory = seeded(DecoderBlock, 12, 3, 10), draw(2, 5, 12), draw(2, 7, 12)
    torch.testing.assert_close(block(x, memory.flip(1)), block(x, memory))


def test_the_encoder_is_permutation_equivariant(draw):
    block, x, order = seeded(EncoderBlock, 12, 3, 10), draw(2, 6, 12), torch.tensor([4, 0, 5, 2, 1, 3])
    torch.testing.assert_close(block(x[:, order]), block(x)[:, order])


def test_a_causal_block_has_a_triangular_jacobian(draw):
    block, x, memory = seeded(DecoderBlock, 12, 3, 10), draw(1, 5, 12), draw(1, 7, 12)
    jacobian = torch.autograd.functional.jacobian(lambda y: block(y, memory, triangle(5)).sum(-1), x)
    reach = jacobian[0, :, 0].abs().sum(-1)
    assert torch.equal(reach > 0, triangle(5))


def test_a_blind_query_gets_the_bias_and_finite_gradients(draw):
    module, x, memory = seeded(CrossAttention, 12, 3), draw(2, 5, 12), draw(2, 7, 12).requires_grad_()
    mask = torch.ones(2, 1, 5, 7, dtype=torch.bool)
    mask[1] = False
    out = module(x, memory, mask)
    assert torch.equal(out[1], module.out_proj.bias.expand(5, 12))
    out.sum().backward()
    assert memory.grad.isfinite().all()
    assert torch.equal(memory.grad[1], torch.zeros(7, 12, dtype=torch.float64))
    assert all(weight.grad.isfinite().all() for weight in module.parameters())


def test_with_zero_output_layers_a_block_is_the_identity(draw):
    block, x = seeded(DecoderBlock, 12, 3, 10), draw(2, 5, 12)
    for layer in (block.attn.out_proj, block.cross_attn.out_proj, block.ffn[2]):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    assert torch.equal(block(x, draw(2, 7, 12)), x)


def test_gradients_match_finite_differences(draw):
    block = seeded(DecoderBlock, 4, 2, 3)
    mask = torch.tensor([[True, False, True], [False] * 3])
    inputs = draw(1, 2, 4).requires_grad_(), draw(1, 3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, memory: block(x, memory, triangle(2), mask), inputs)
