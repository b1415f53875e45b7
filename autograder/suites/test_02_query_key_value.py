"""Chapter 2: query, key, value."""

import torch

from autograder.exam import gradients_match, left_alone, matches, promise, require
from autograder.exam.sentences import ANY_LEADING_AXES, FLOAT32_AND_16_BITS, INPUTS_STAY, UNKNOWN_KIND_IS_REFUSED
from autograder.reference import ch02_query_key_value as reference

LOW = (torch.float16, torch.bfloat16)


def layer(draw, d=6, d_k=4, d_v=7, dtype=torch.float64):
    """Wq, Wk and Wv as nn.Linear stores them, [out, in]."""
    return draw(d_k, d, dtype=dtype), draw(d_k, d, dtype=dtype), draw(d_v, d, dtype=dtype)


def biases(draw, d_k=4, d_v=7, dtype=torch.float64):
    return draw(d_k, dtype=dtype), draw(d_k, dtype=dtype), draw(d_v, dtype=dtype)


@promise(
    "project_qkv",
    en="q, k and v are x times the transposed Wq, Wk and Wv, in this order; v may have its own width.",
    zh="q、k、v 依次是 x 乘以 Wq、Wk、Wv 的转置；v 的宽度可以与众不同。",
    weight=2,
)
def test_three_projections_of_the_same_tokens(student, draw):
    matches(student, reference.project_qkv, draw(2, 5, 6), *layer(draw))
    matches(student, reference.project_qkv, draw(3, 4, 7), *layer(draw, d=7, d_k=6, d_v=2))


@promise(
    "project_qkv",
    en="Square weights are transposed too: they are stored as [out, in].",
    zh="方阵权重同样要转置：它们按 [out, in] 存放。",
)
def test_square_weights_are_transposed_too(student, draw):
    matches(student, reference.project_qkv, draw(2, 3, 5), *layer(draw, d=5, d_k=5, d_v=5))


@promise("project_qkv", en="Each projection adds its own bias.", zh="三个投影各加各的偏置。")
def test_three_biases_for_three_projections(student, draw):
    matches(student, reference.project_qkv, draw(2, 5, 6), *layer(draw), *biases(draw))
    square = {"d_k": 5, "d_v": 5}
    matches(student, reference.project_qkv, draw(2, 3, 5), *layer(draw, d=5, **square), *biases(draw, **square))


@promise(
    "project_qkv",
    en="Any of the biases may be missing: that projection adds none, the others still do.",
    zh="任何一个偏置都可以缺：缺的那个不加，其余照加。",
)
def test_any_bias_may_be_missing(student, draw):
    x, weights = draw(3, 2, 6), layer(draw)
    bq, bk, bv = biases(draw)
    matches(student, reference.project_qkv, x, *weights, bq=bq)
    matches(student, reference.project_qkv, x, *weights, bv=bv)
    matches(student, reference.project_qkv, x, *weights, bq=bq, bv=bv)
    matches(student, reference.project_qkv, x, *weights, bq=bq, bk=bk)


@promise(
    "project_qkv",
    en="The key bias moves every key by the same vector. Softmax will cancel that later, but k must still contain it.",
    zh="键的偏置把每个键都平移同一个向量。softmax 之后会把它抵消，但 k 还是要如实算出来。",
)
def test_the_key_bias_is_added_though_softmax_will_cancel_it(student, draw):
    x, weights = draw(2, 5, 6), layer(draw)
    matches(student, reference.project_qkv, x, *weights)
    matches(student, reference.project_qkv, x, *weights, bk=draw(4, scale=3.0))


@promise("project_qkv", ANY_LEADING_AXES)
def test_any_leading_axes_of_the_tokens(student, draw):
    matches(student, reference.project_qkv, draw(5, 6), *layer(draw), *biases(draw))
    matches(student, reference.project_qkv, draw(2, 3, 5, 6), *layer(draw), *biases(draw))


@promise(
    "project_qkv",
    en="All positions share the weights: tokens in another order give the same rows in that order, for any length.",
    zh="所有位置共用同一套权重：词元换个顺序，结果的各行跟着换；长度也随意。",
)
def test_all_positions_share_the_weights(student, draw):
    x, weights = draw(2, 5, 6), (*layer(draw), *biases(draw))
    matches(student, reference.project_qkv, x, *weights)
    matches(student, reference.project_qkv, x[:, draw.permutation(5)], *weights)
    matches(student, reference.project_qkv, x[:, :1], *weights)
    matches(student, reference.project_qkv, torch.cat([x, x], 1), *weights)


@promise(
    "project_qkv",
    en="Gradients reach the tokens, the three weights and the three biases.",
    zh="梯度能传到词元、三个权重和三个偏置。",
)
def test_gradients_reach_tokens_weights_and_biases(student, draw):
    args = (draw(2, 5, 6), *layer(draw), *biases(draw))
    cotangents = (draw(2, 5, 4), draw(2, 5, 4), draw(2, 5, 7))
    gradients_match(student, reference.project_qkv, *args, wrt=range(7), cotangents=cotangents)


@promise("project_qkv", FLOAT32_AND_16_BITS)
def test_projections_in_lower_precision(student, draw):
    for dtype in (torch.float32, *LOW):
        args = (draw(2, 5, 6, dtype=dtype), *layer(draw, dtype=dtype), *biases(draw, dtype=dtype))
        matches(student, reference.project_qkv, *args)


@promise(
    "project_qkv",
    en="Tokens, weights and biases stay as they were, and asking twice gives the same.",
    zh="不改动词元、权重和偏置，问两次答案相同。",
)
def test_tokens_and_weights_are_left_alone(student, draw):
    square = {"d_k": 5, "d_v": 5}
    left_alone(student, reference.project_qkv, draw(2, 3, 5), *layer(draw, d=5, **square), *biases(draw, **square))
    left_alone(student, reference.project_qkv, draw(2, 3, 6), *layer(draw))


@promise(
    "fixed_mixing",
    en="Row i of softmax(M) says how much of each token goes into output i.",
    zh="softmax(M) 的第 i 行说明：输出 i 里，每个词元各占多少。",
    weight=2,
)
def test_rows_of_the_softmax_mix_the_tokens(student, draw):
    matches(student, reference.fixed_mixing, draw(2, 5, 3), draw(5, 5))
    matches(student, reference.fixed_mixing, draw(3, 4, 6), draw(4, 4, scale=2.0))


@promise(
    "fixed_mixing",
    en="With as many features as tokens, it is still the tokens that are mixed.",
    zh="特征数与词元数恰好相等时，被混合的仍是词元。",
)
def test_tokens_are_mixed_and_not_features(student, draw):
    matches(student, reference.fixed_mixing, draw(2, 4, 4), draw(4, 4))


@promise("fixed_mixing", ANY_LEADING_AXES)
def test_any_leading_axes_of_the_mixed(student, draw):
    matches(student, reference.fixed_mixing, draw(4, 3), draw(4, 4))
    matches(student, reference.fixed_mixing, draw(2, 3, 5, 6), draw(5, 5))


@promise(
    "fixed_mixing",
    en="The weights do not depend on the input: unit vectors give softmax(M) itself, and another input is mixed with the same weights.",
    zh="权重与输入无关：输入单位向量，得到的就是 softmax(M) 本身；换个输入，混法不变。",
)
def test_the_weights_do_not_depend_on_the_input(student, draw):
    M = draw(5, 5)
    matches(student, reference.fixed_mixing, torch.eye(5, dtype=torch.float64), M)
    x = draw(2, 5, 3)
    matches(student, reference.fixed_mixing, x, M)
    matches(student, reference.fixed_mixing, -3.0 * x, M)


@promise(
    "fixed_mixing",
    en="The weights belong to positions: tokens in another order are mixed differently, not just reordered.",
    zh="权重属于位置：词元换了顺序，混出来的东西就不同，而不只是换个次序。",
)
def test_the_weights_belong_to_positions(student, draw):
    x, M = draw(2, 5, 3), draw(5, 5)
    before = matches(student, reference.fixed_mixing, x, M)
    after = matches(student, reference.fixed_mixing, x.roll(1, 1), M)
    require(
        not torch.equal(after, before.roll(1, 1)),
        "fixed_mixing: reordering the tokens only reorders the output",
        "fixed_mixing：词元换了顺序，输出只是跟着换了顺序",
    )


@promise("fixed_mixing", en="Gradients reach the tokens and M.", zh="梯度能传到词元，也能传到 M。")
def test_gradients_reach_tokens_and_matrix(student, draw):
    args = (draw(2, 5, 3), draw(5, 5))
    gradients_match(student, reference.fixed_mixing, *args, wrt=(0, 1), cotangents=(draw(2, 5, 3),))


@promise("fixed_mixing", FLOAT32_AND_16_BITS)
def test_mixing_in_lower_precision(student, draw):
    for dtype in (torch.float32, *LOW):
        matches(student, reference.fixed_mixing, draw(2, 5, 3, dtype=dtype), draw(5, 5, dtype=dtype))


@promise("fixed_mixing", INPUTS_STAY)
def test_tokens_and_matrix_are_left_alone(student, draw):
    left_alone(student, reference.fixed_mixing, draw(2, 5, 3), draw(5, 5))


def sizes(draw):
    """n and d, so far apart that a formula in the wrong one of them gives another number."""
    return draw.integer(11, 19), draw.integer(23, 40)


@promise(
    "count_parameters",
    en="A learned n × n matrix has n² parameters, whatever the width.",
    zh="直接学一个 n × n 矩阵要 n² 个参数，与宽度无关。",
)
def test_a_fixed_mixing_has_n_squared(student, draw):
    n, d = sizes(draw)
    matches(student, reference.count_parameters, "fixed", n, d)
    matches(student, reference.count_parameters, "fixed", d, n)
    matches(student, reference.count_parameters, "fixed", n, 4 * d)


@promise(
    "count_parameters",
    en="Query, key and value have d² each, whatever the length.",
    zh="查询、键、值的投影各有 d² 个参数，与长度无关。",
)
def test_qkv_has_three_d_squared(student, draw):
    n, d = sizes(draw)
    matches(student, reference.count_parameters, "qkv", n, d)
    matches(student, reference.count_parameters, "qkv", 100 * n, d)


@promise(
    "count_parameters",
    en="Multi-head attention has one more matrix, the output projection.",
    zh="多头注意力还多一个矩阵：输出投影。",
)
def test_multi_head_has_four_d_squared(student, draw):
    n, d = sizes(draw)
    matches(student, reference.count_parameters, "multi_head", n, d)
    matches(student, reference.count_parameters, kind="multi_head", n=d, d=n)


@promise("count_parameters", UNKNOWN_KIND_IS_REFUSED)
def test_an_unknown_kind_is_refused(student, draw):
    n, d = sizes(draw)
    require(
        student.refuses("count_parameters", "recurrent", n, d),
        "count_parameters: an unknown kind does not raise ValueError",
        "count_parameters：未知的 kind 没有抛出 ValueError",
    )
    matches(student, reference.count_parameters, "qkv", n, d)
