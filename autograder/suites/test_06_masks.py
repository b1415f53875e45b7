"""Chapter 6: masks."""

import torch

from autograder.exam import agree_gradients, draw_qkv, gradients_match, left_alone, matches, promise, require
from autograder.exam.sentences import (
    ANY_LEADING_AXES,
    BLIND_QUERY_GETS_ZEROS,
    FLOAT32_AND_16_BITS,
    FORBIDDEN_SCORE_HAS_NO_EFFECT,
    GRADIENTS_WITH_BLIND_QUERIES,
    INPUTS_STAY,
    SHARED_MASK_BROADCASTS,
)
from autograder.reference import ch06_masks as reference

LOW = (torch.float16, torch.bfloat16)


@promise("causal_mask", en="Query i sees the keys 0 … i and none after.", zh="查询 i 看到键 0 … i，看不到之后的。")
def test_a_square_causal_mask_hides_the_future(student, draw):
    for n in (draw.integer(3, 9), 2, 1):  # the largest first: with one query, many mistakes give the same mask
        matches(student, reference.causal_mask, n)


@promise(
    "causal_mask",
    en="With more keys than queries, the last query sees every key (lower right).",
    zh="键多于查询时，最后一个查询看到所有键（右下对齐）。",
)
def test_a_long_causal_mask_is_aligned_to_the_lower_right(student, draw):
    n = draw.integer(2, 4)
    matches(student, reference.causal_mask, n, n + draw.integer(1, 5))
    matches(student, reference.causal_mask, 1, k_len=5)


@promise(
    "causal_mask",
    en="With fewer keys than queries, the first queries see nothing.",
    zh="键少于查询时，最前面的查询什么也看不到。",
)
def test_a_short_causal_mask_leaves_the_first_queries_blind(student, draw):
    n = draw.integer(4, 7)
    matches(student, reference.causal_mask, n, k_len=n - draw.integer(1, 3))


@promise("padding_mask", en="Real tokens are True, padding is False.", zh="真实词元为 True，填充为 False。")
def test_padding_is_false(student, draw):
    n = draw.integer(6, 9)
    matches(student, reference.padding_mask, torch.tensor([n - 1, 1, n - 3]), n)


@promise(
    "padding_mask",
    en="Empty and full sequences work, for int32 lengths too, and the lengths stay as they were.",
    zh="空序列和满序列也正确；长度是 int32 时同样正确，且不被改动。",
)
def test_empty_and_full_sequences(student, draw):
    n = draw.integer(3, 6)
    left_alone(student, reference.padding_mask, torch.tensor([0, n], dtype=torch.int32), n)


@promise(
    "to_additive",
    en="0 where allowed, −inf elsewhere; the mask stays as it was.",
    zh="允许处为 0，其余为 −inf；传入的掩码不变。",
    weight=2,
)
def test_zero_where_allowed_and_minus_infinity_elsewhere(student, draw):
    left_alone(student, reference.to_additive, draw.mask(2, 3, 5))
    matches(student, reference.to_additive, draw.mask(3, 1, 1, 4))


@promise("to_additive", en="The dtype asked for is the dtype returned.", zh="要什么 dtype 就返回什么 dtype。")
def test_the_dtype_is_obeyed(student, draw):
    for dtype in (torch.float64, *LOW):
        matches(student, reference.to_additive, draw.mask(4, 3), dtype=dtype)


@promise(
    "adapt_mask",
    en="nn.MultiheadAttention's bool mask: True = drop.",
    zh="nn.MultiheadAttention 的布尔掩码：True = 丢弃。",
)
def test_nn_mha_masks_drop_where_true(student, draw):
    matches(student, reference.adapt_mask, draw.mask(3, 5), "nn_mha_bool")


@promise("adapt_mask", en="Additive masks: 0 = keep, −inf = drop.", zh="加性掩码：0 = 保留，−inf = 丢弃。")
def test_additive_masks_drop_at_minus_infinity(student, draw):
    for dtype in (torch.float32, torch.bfloat16):
        matches(student, reference.adapt_mask, reference.to_additive(draw.mask(2, 4, 3), dtype), "additive")


@promise(
    "adapt_mask",
    en="scaled_dot_product_attention's bool mask says the opposite: True = keep.",
    zh="scaled_dot_product_attention 的布尔掩码正好相反：True = 保留。",
)
def test_sdpa_masks_keep_where_nn_mha_masks_drop(student, draw):
    mask = draw.mask(2, 1, 3, 5)
    matches(student, reference.adapt_mask, mask, "sdpa_bool")
    matches(student, reference.adapt_mask, mask, "nn_mha_bool")


@promise("adapt_mask", en="0/1 masks of any dtype: 1 = keep.", zh="任意 dtype 的 0/1 掩码：1 = 保留。")
def test_one_means_keep_in_any_dtype(student, draw):
    for dtype in (torch.int64, torch.float32, torch.uint8, torch.bool):
        matches(student, reference.adapt_mask, draw.mask(4, 3).to(dtype), "keep_01")


@promise(
    "adapt_mask",
    en="Key padding masks: True = drop, and the shape becomes [B, 1, 1, Lk].",
    zh="键填充掩码：True = 丢弃，形状变为 [B, 1, 1, Lk]。",
)
def test_key_padding_gets_its_axes(student, draw):
    matches(student, reference.adapt_mask, draw.mask(3, 5), "key_padding")


@promise("adapt_mask", en="An unknown source raises ValueError.", zh="未知的 source 抛出 ValueError。")
def test_an_unknown_source_is_refused(student, draw):
    mask = draw.mask(2, 3)
    require(
        student.refuses("adapt_mask", mask, "padding"),
        "adapt_mask: an unknown source does not raise ValueError",
        "adapt_mask：未知的 source 没有抛出 ValueError",
    )
    matches(student, reference.adapt_mask, mask, "sdpa_bool")


@promise("adapt_mask", en="The mask you are given stays as it was.", zh="传入的掩码不被改动。")
def test_the_given_mask_is_left_alone(student, draw):
    left_alone(student, reference.adapt_mask, draw.mask(4, 5), "nn_mha_bool")
    left_alone(student, reference.adapt_mask, draw.mask(2, 5), "key_padding")


@promise(
    "masked_attention",
    en="Weights are the softmax over the allowed keys, and the output is their mix of the values.",
    zh="权重是对允许的键做 softmax，输出是按权重混合的值。",
    weight=2,
)
def test_only_allowed_keys_are_mixed(student, draw):
    q, k, v = draw_qkv(draw, 2, 3)
    matches(student, reference.masked_attention, q, k, v, draw.mask(2, 3, 4, 6))


@promise("masked_attention", SHARED_MASK_BROADCASTS)
def test_a_shared_mask_broadcasts(student, draw):
    q, k, v = draw_qkv(draw, 2, 3)
    matches(student, reference.masked_attention, q, k, v, draw.mask(2, 1, 1, 6))
    matches(student, reference.masked_attention, q, k, v, draw.mask(4, 6))
    matches(student, reference.masked_attention, q, k, v, draw.mask(2, 1, 4, 6))


@promise(
    "masked_attention",
    en="With as many sequences as heads, a mask per sequence is still not a mask per head.",
    zh="序列数与头数恰好相等时，每个序列一个的掩码也不会变成每个头一个。",
)
def test_a_mask_per_sequence_is_not_a_mask_per_head(student, draw):
    q, k, v = draw_qkv(draw, 3, 3)
    matches(student, reference.masked_attention, q, k, v, draw.mask(3, 1, 1, 6))
    matches(student, reference.masked_attention, q, k, v, draw.mask(3, 1, 4, 6))


@promise("masked_attention", ANY_LEADING_AXES)
def test_any_leading_axes(student, draw):
    matches(student, reference.masked_attention, *draw_qkv(draw), draw.mask(4, 6))
    matches(student, reference.masked_attention, *draw_qkv(draw, 2, 8, 3), draw.mask(2, 1, 1, 4, 6))


@promise(
    "masked_attention",
    en="With as many queries as keys, row i of the mask is still what query i sees, and padding still hides keys.",
    zh="查询和键一样多时，第 i 行仍是查询 i 能看到的，填充遮的仍是键。",
)
def test_rows_of_a_square_mask_are_queries(student, draw):
    q, k, v = draw_qkv(draw, 2, lq=5, lk=5, d=4)
    matches(student, reference.masked_attention, q, k, v, reference.causal_mask(5))
    matches(student, reference.masked_attention, q, k, v, draw.mask(2, 1, 5))


@promise("masked_attention", BLIND_QUERY_GETS_ZEROS)
def test_a_blind_query_gets_zeros(student, draw):
    q, k, v = draw_qkv(draw, 3)
    mask = draw.mask(3, 4, 6)
    mask[1, 2] = False
    matches(student, reference.masked_attention, q, k, v, mask)


@promise("masked_attention", GRADIENTS_WITH_BLIND_QUERIES)
def test_gradients_are_right_also_for_blind_queries(student, draw):
    q, k, v = draw_qkv(draw, 2)
    mask = draw.mask(2, 4, 6)
    mask[0, 1] = False
    cotangents = (draw(2, 4, 7), draw(2, 4, 6))
    gradients_match(student, reference.masked_attention, q, k, v, mask, wrt=(0, 1, 2), cotangents=cotangents)


@promise("masked_attention", FORBIDDEN_SCORE_HAS_NO_EFFECT)
def test_a_huge_forbidden_score_stays_hidden(student, draw):
    q, k, v = draw_qkv(draw, 2)
    mask = draw.mask(2, 4, 6)
    k[:, 0] = 2000 * 5**0.5 * q[:, 2] / q[:, 2].square().sum(-1, keepdim=True)  # query 2 scores 2000 on key 0
    mask[..., 0], mask[..., 1] = False, True
    matches(student, reference.masked_attention, q, k, v, mask)


@promise(
    "masked_attention",
    en="Changing a forbidden key and its value changes nothing, to the last bit, and their gradient is exactly 0.",
    zh="改动被禁止的键和值，结果一位也不变，它们的梯度恰好为 0。",
)
def test_a_forbidden_key_has_no_influence(student, draw):
    q, k, v = draw_qkv(draw, 2, dtype=torch.float32)
    mask = draw.mask(2, 4, 6)
    mask[..., 3] = False
    mask[..., 0] = True
    before = matches(student, reference.masked_attention, q, k, v, mask)
    k[..., 3, :] += 5.0
    v[..., 3, :] -= 7.0
    after = matches(student, reference.masked_attention, q, k, v, mask)
    require(
        all(torch.equal(a, b) for a, b in zip(before, after, strict=True)),
        "masked_attention: a forbidden key still influences the output",
        "masked_attention：被禁止的键仍然影响输出",
    )
    asked = {"wrt": (1, 2), "cotangents": (draw(2, 4, 7, dtype=torch.float32), draw(2, 4, 6, dtype=torch.float32))}
    found = student.vjp("masked_attention", q, k, v, mask, **asked)
    agree_gradients(found.gradients, reference.masked_attention, q, k, v, mask, **asked)
    require(
        all(not gradient[..., 3, :].any() for gradient in found.gradients),
        "masked_attention: a gradient reaches a forbidden key",
        "masked_attention：梯度流到了被禁止的键",
    )


@promise("masked_attention", FLOAT32_AND_16_BITS)
def test_lower_precision(student, draw):
    for dtype in (torch.float32, *LOW):
        q, k, v = draw_qkv(draw, 2, dtype=dtype)
        mask = draw.mask(2, 4, 6)
        mask[1, 3] = False
        matches(student, reference.masked_attention, q, k, v, mask)


@promise("masked_attention", INPUTS_STAY)
def test_inputs_are_left_alone(student, draw):
    mask = draw.mask(3, 4, 6)
    mask[2, 1] = False
    left_alone(student, reference.masked_attention, *draw_qkv(draw, 3), mask)
