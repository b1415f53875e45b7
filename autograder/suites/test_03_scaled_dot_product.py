"""Chapter 3: scaled dot-product attention, forwards and backwards."""

import torch

from autograder.exam import draw_qkv, gradients_match, left_alone, matches, promise
from autograder.exam.sentences import (
    ANY_LEADING_AXES,
    BLIND_QUERY_GETS_ZEROS,
    DTYPE_IN_IS_DTYPE_OUT,
    FORBIDDEN_SCORE_HAS_NO_EFFECT,
    INPUTS_STAY,
)
from autograder.reference import ch03_scaled_dot_product as reference

DTYPES = (torch.float32, torch.bfloat16)


# attention_loops


@promise(
    "attention_loops",
    en="Each output row is the mix of the values, by the softmax of q·k/√d_k over the keys.",
    zh="每一行输出都是值的加权混合，权重是 q·k/√d_k 在各个键上的 softmax。",
    weight=2,
)
def test_each_query_mixes_the_values(student, draw):
    matches(student, reference.attention_loops, *draw_qkv(draw, lq=3, lk=4))


@promise(
    "attention_loops",
    en="There may be more queries than keys, or one query only.",
    zh="查询可以比键多，也可以只有一个查询。",
)
def test_more_queries_than_keys_and_a_single_query(student, draw):
    matches(student, reference.attention_loops, *draw_qkv(draw, lq=4, lk=2, d=9, e=5))
    matches(student, reference.attention_loops, *draw_qkv(draw, lq=1, lk=3, d=4, e=2))


@promise(
    "attention_loops",
    en="With as many queries as keys, row i still belongs to query i: the sum runs over j.",
    zh="查询和键一样多时，第 i 行仍属于查询 i：求和的指标是 j。",
)
def test_row_i_belongs_to_query_i(student, draw):
    matches(student, reference.attention_loops, *draw_qkv(draw, lq=3, lk=3, d=4, e=2))


@promise(
    "attention_loops",
    en="The order of the (key, value) pairs does not matter.",
    zh="（键，值）对的先后次序无关紧要。",
)
def test_the_order_of_the_pairs_does_not_matter_to_the_loops(student, draw):
    q, k, v = draw_qkv(draw, lq=2, lk=4, d=9)
    matches(student, reference.attention_loops, q, k, v)
    matches(student, reference.attention_loops, q, k.flip(0), v.flip(0))


@promise("attention_loops", DTYPE_IN_IS_DTYPE_OUT)
def test_the_loops_keep_the_dtype(student, draw):
    for dtype in DTYPES:
        matches(student, reference.attention_loops, *draw_qkv(draw, lq=2, lk=3, d=4, dtype=dtype))


@promise("attention_loops", INPUTS_STAY)
def test_the_loops_leave_their_inputs_alone(student, draw):
    left_alone(student, reference.attention_loops, *draw_qkv(draw, lq=2, lk=3, d=4))


# scaled_dot_product_attention


@promise(
    "scaled_dot_product_attention",
    en="Weights are the softmax over the keys, each row sums to 1; the output is weights @ v, d_v wide.",
    zh="权重是对键做的 softmax，每一行之和为 1；输出是 weights @ v，宽为 d_v。",
    weight=2,
)
def test_weights_are_a_softmax_over_the_keys(student, draw):
    matches(student, reference.scaled_dot_product_attention, *draw_qkv(draw))
    matches(student, reference.scaled_dot_product_attention, *draw_qkv(draw, lq=6, lk=3, d=4, e=2))


@promise("scaled_dot_product_attention", ANY_LEADING_AXES)
def test_any_number_of_batch_axes(student, draw):
    matches(student, reference.scaled_dot_product_attention, *draw_qkv(draw, 3))
    matches(student, reference.scaled_dot_product_attention, *draw_qkv(draw, 2, 3))


@promise(
    "scaled_dot_product_attention",
    en="Adding one vector to all keys leaves the weights as they are, however large it is: large scores do not overflow.",
    zh="给所有的键加上同一个向量，权重不变；向量再大也一样：分数很大时不会溢出。",
)
def test_a_shift_of_all_keys_changes_nothing(student, draw):
    q, k, v = draw_qkv(draw, 3)
    matches(student, reference.scaled_dot_product_attention, q, k, v)
    matches(student, reference.scaled_dot_product_attention, q, k + draw(9, scale=3000.0), v)


@promise(
    "scaled_dot_product_attention",
    en="Shuffling the (key, value) pairs shuffles the columns of the weights and leaves the output unchanged.",
    zh="打乱（键，值）对的次序，权重的列跟着打乱，输出不变。",
)
def test_shuffled_pairs_give_the_same_output(student, draw):
    q, k, v = draw_qkv(draw, 2)
    order = draw.permutation(6)
    matches(student, reference.scaled_dot_product_attention, q, k, v)
    matches(student, reference.scaled_dot_product_attention, q, k[:, order], v[:, order])


@promise(
    "scaled_dot_product_attention",
    en="A given `scale` replaces 1/√d_k; `scale=0.0` gives equal weights.",
    zh="给定的 `scale` 取代 1/√d_k；`scale=0.0` 时各权重相等。",
)
def test_a_given_scale_is_obeyed(student, draw):
    q, k, v = draw_qkv(draw, 2)
    matches(student, reference.scaled_dot_product_attention, q, k, v, scale=0.3)
    matches(student, reference.scaled_dot_product_attention, q, k, v, scale=0.0)


@promise(
    "scaled_dot_product_attention",
    en="A bool mask, True = may look, is applied before the softmax; a shared mask broadcasts.",
    zh="布尔掩码（True = 可以看）在 softmax 之前起作用；共用的掩码能正确广播。",
    weight=2,
)
def test_only_allowed_keys_are_mixed(student, draw):
    q, k, v = draw_qkv(draw, 2, 3)
    matches(student, reference.scaled_dot_product_attention, q, k, v, mask=draw.mask(2, 3, 4, 6))
    matches(student, reference.scaled_dot_product_attention, q, k, v, mask=draw.mask(2, 1, 1, 6))
    matches(student, reference.scaled_dot_product_attention, q, k, v, draw.mask(4, 6), 0.8)


@promise(
    "scaled_dot_product_attention",
    en="Row i of a square mask is what query i may see.",
    zh="方形掩码的第 i 行，是查询 i 能看到的键。",
)
def test_rows_of_a_square_mask_are_queries(student, draw):
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    matches(student, reference.scaled_dot_product_attention, *draw_qkv(draw, 2, lq=5, lk=5, d=4, e=3), mask=causal)


@promise("scaled_dot_product_attention", BLIND_QUERY_GETS_ZEROS)
def test_a_blind_query_gets_zeros(student, draw):
    mask = draw.mask(3, 4, 6)
    mask[1, 2] = False
    matches(student, reference.scaled_dot_product_attention, *draw_qkv(draw, 3), mask=mask)


@promise("scaled_dot_product_attention", FORBIDDEN_SCORE_HAS_NO_EFFECT)
def test_a_huge_forbidden_score_stays_hidden(student, draw):
    q, k, v = draw_qkv(draw, 2)
    mask = draw.mask(2, 4, 6)
    mask[..., 0], mask[..., 1] = False, True
    k[:, 0] += 3000 * q[:, 2] / q[:, 2].norm(dim=-1, keepdim=True)
    matches(student, reference.scaled_dot_product_attention, q, k, v, mask=mask)


@promise(
    "scaled_dot_product_attention",
    en="Gradients flow from both results to q, k and v, with the right values.",
    zh="两个结果的梯度都能传回 q、k 和 v，数值正确。",
)
def test_gradients_are_right(student, draw):
    gradients_match(
        student,
        reference.scaled_dot_product_attention,
        *draw_qkv(draw, 2),
        wrt=(0, 1, 2),
        cotangents=(draw(2, 4, 7), draw(2, 4, 6)),
    )


@promise(
    "scaled_dot_product_attention",
    en="With a mask too, gradients are right, and finite for a query that may look nowhere.",
    zh="有掩码时梯度同样正确；哪里都不许看的查询，梯度也是有限的。",
)
def test_gradients_are_right_also_for_blind_queries(student, draw):
    mask = draw.mask(2, 4, 6)
    mask[0, 1] = False
    gradients_match(
        student,
        reference.scaled_dot_product_attention,
        *draw_qkv(draw, 2),
        wrt=(0, 1, 2),
        cotangents=(draw(2, 4, 7), draw(2, 4, 6)),
        mask=mask,
    )


@promise("scaled_dot_product_attention", DTYPE_IN_IS_DTYPE_OUT)
def test_attention_keeps_the_dtype(student, draw):
    mask = draw.mask(2, 4, 6)
    mask[1, 3] = False
    for dtype in DTYPES:
        matches(student, reference.scaled_dot_product_attention, *draw_qkv(draw, 2, dtype=dtype), mask=mask)


@promise("scaled_dot_product_attention", INPUTS_STAY)
def test_attention_leaves_its_inputs_alone(student, draw):
    left_alone(student, reference.scaled_dot_product_attention, *draw_qkv(draw, 3), draw.mask(3, 4, 6))


# attention_backward


def remembered(draw, *lead, lq=4, lk=6, d=9, e=7, mask=None, dtype=torch.float64):
    """q, k, v, the weights of a forward pass under `mask`, and the gradient of its output."""
    q, k, v = draw_qkv(draw, *lead, lq=lq, lk=lk, d=d, e=e)
    weights = reference.scaled_dot_product_attention(q, k, v, mask)[1]
    return tuple(x.to(dtype) for x in (q, k, v, weights, draw(*lead, lq, e)))


@promise(
    "attention_backward",
    en="dq, dk and dv are the gradients of the output, each with the shape of its input.",
    zh="dq、dk、dv 是输出对各输入的梯度，形状与对应的输入相同。",
    weight=2,
)
def test_the_way_back_gives_the_gradients(student, draw):
    matches(student, reference.attention_backward, *remembered(draw))
    matches(student, reference.attention_backward, *remembered(draw, lq=5, lk=3, d=4, e=2))


@promise(
    "attention_backward",
    en="The given weights are used: they may come from a mask and have rows of zeros.",
    zh="使用的是给定的权重：它们可能来自掩码，甚至整行为 0。",
    weight=2,
)
def test_the_given_weights_are_used(student, draw):
    mask = draw.mask(4, 6)
    mask[2] = False
    matches(student, reference.attention_backward, *remembered(draw, mask=mask))
    matches(student, reference.attention_backward, *remembered(draw, 3, mask=draw.mask(3, 4, 6)))


@promise("attention_backward", ANY_LEADING_AXES)
def test_the_way_back_takes_any_number_of_batch_axes(student, draw):
    matches(student, reference.attention_backward, *remembered(draw, 3, mask=draw.mask(4, 6)))
    matches(student, reference.attention_backward, *remembered(draw, 2, 3, mask=draw.mask(2, 1, 1, 6)))


@promise(
    "attention_backward",
    en="With as many queries as keys nothing is transposed by accident.",
    zh="查询和键一样多时，也没有误转置。",
)
def test_a_square_way_back_is_not_transposed(student, draw):
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    matches(student, reference.attention_backward, *remembered(draw, lq=5, lk=5, d=4, e=3, mask=causal))


@promise("attention_backward", DTYPE_IN_IS_DTYPE_OUT)
def test_the_way_back_keeps_the_dtype(student, draw):
    for dtype in DTYPES:
        matches(student, reference.attention_backward, *remembered(draw, 2, mask=draw.mask(4, 6), dtype=dtype))


@promise("attention_backward", INPUTS_STAY)
def test_the_way_back_leaves_its_inputs_alone(student, draw):
    left_alone(student, reference.attention_backward, *remembered(draw, 3, mask=draw.mask(3, 4, 6)))
