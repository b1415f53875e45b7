"""The reference of chapter 13, compared with PyTorch's FLOP counter, real modules and real tensors."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from autograder.reference import ch13_cost as reference


def attention_by_hand(x, heads, weights):
    q, k, v = ((x @ w.T).unflatten(-1, (heads, -1)).transpose(1, 2) for w in weights[:3])
    mixed = torch.softmax(q @ k.mT, -1) @ v
    return mixed.transpose(1, 2).flatten(2) @ weights[3].T


@pytest.mark.parametrize(
    ("batch", "length", "width", "heads"), [(2, 5, 12, 3), (3, 40, 6, 2), (1, 1, 8, 4), (2, 9, 7, 1)]
)
def test_flops_match_the_counter_whatever_the_number_of_heads(batch, length, width, heads):
    x, weights = torch.randn(batch, length, width), torch.randn(4, width, width)
    with FlopCounterMode(display=False) as counter:
        attention_by_hand(x, heads, weights)
    assert counter.get_total_flops() == reference.attention_flops(batch, length, width)


def test_flops_match_pytorchs_own_module():
    module = nn.MultiheadAttention(24, 4, batch_first=True)
    x = torch.randn(3, 7, 24)
    with FlopCounterMode(display=False) as counter:
        module(x, x, x)  # weights are wanted, so nothing is fused
    assert counter.get_total_flops() == reference.attention_flops(3, 7, 24)


@pytest.mark.parametrize("width", [2, 64, 513])
def test_scores_cost_as_much_as_projections_at_twice_the_width(width):
    assert reference.attention_flops(3, 2 * width, width) == 2 * 8 * 3 * (2 * width) * width**2


@pytest.mark.parametrize(("width", "inner"), [(2, 3), (16, 64), (40, 7), (768, 3072)])
def test_parameters_match_a_real_block(width, inner):
    block = nn.TransformerEncoderLayer(width, nhead=2, dim_feedforward=inner, device="meta")
    assert reference.block_parameters(width, inner) == sum(p.numel() for p in block.parameters())


@pytest.mark.parametrize("width", [1, 12, 768, 4096])
def test_the_usual_block_has_12_d_squared_plus_13_d_parameters(width):
    assert reference.block_parameters(width, 4 * width) == 12 * width**2 + 13 * width


@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16, torch.float32, torch.float64])
def test_bytes_match_real_tensors(dtype):
    cache = torch.empty(2, 5, 3, 4, 9, 6, dtype=dtype)  # keys and values, layers, batch, heads, length, width
    size = dtype.itemsize
    assert reference.kv_cache_bytes(5, 4, 6, 9, 3, size) == cache.nbytes
    assert reference.attention_matrix_bytes(3, 4, 9, size) == torch.empty(3, 4, 9, 9, dtype=dtype).nbytes


def test_one_token_of_known_models():
    assert reference.kv_cache_bytes(32, 32, 128, 1) == 512 * 2**10
    assert reference.kv_cache_bytes(32, 8, 128, 1) == 128 * 2**10


@pytest.mark.parametrize(("length", "gibibytes"), [(1024, 1), (4096, 16), (100_000, 9536.74)])
def test_matrices_of_the_notes(length, gibibytes):
    assert reference.attention_matrix_bytes(32, 8, length) / 2**30 == pytest.approx(gibibytes, rel=1e-6)


def test_counts_are_whole_numbers():
    counts = (
        reference.attention_flops(2, 3, 5),
        reference.block_parameters(3, 5),
        reference.kv_cache_bytes(2, 3, 5, 7),
        reference.attention_matrix_bytes(2, 3, 5),
    )
    assert [type(count) for count in counts] == [int] * 4
