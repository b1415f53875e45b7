"""Chapter 1: from recurrence to attention."""

import torch

from autograder.exam import gradients_match, left_alone, matches, promise, require
from autograder.exam.sentences import ANY_LEADING_AXES, FLOAT32_AND_16_BITS, INPUTS_STAY, UNKNOWN_KIND_IS_REFUSED
from autograder.reference import ch01_from_recurrence_to_attention as reference

LOW = (torch.float16, torch.bfloat16)


def states(draw, *lead, lq=4, lk=6, ds=5, dh=7, da=8, scale=1.0, dtype=torch.float64):
    """s, h, Wa, Ua, va with pairwise distinct sizes."""
    return (
        draw(*lead, lq, ds, scale=scale, dtype=dtype),
        draw(*lead, lk, dh, scale=scale, dtype=dtype),
        draw(da, ds, scale=ds**-0.5, dtype=dtype),
        draw(da, dh, scale=dh**-0.5, dtype=dtype),
        draw(da, dtype=dtype),
    )


@promise(
    "additive_scores",
    en="The score of a pair is va · tanh(Wa s + Ua h), for every state s and every state h.",
    zh="每一对状态 s 与 h 的分数都是 va · tanh(Wa s + Ua h)。",
    weight=2,
)
def test_every_pair_is_scored_by_the_small_network(student, draw):
    matches(student, reference.additive_scores, *states(draw))
    matches(student, reference.additive_scores, *states(draw, 3))


@promise(
    "additive_scores",
    en="When all widths are equal, Wa still belongs to s, Ua to h, and both act as y = x Wᵀ.",
    zh="各个宽度都相等时，Wa 仍作用于 s，Ua 仍作用于 h，写法仍是 y = x Wᵀ。",
)
def test_square_matrices_act_on_their_own_states(student, draw):
    matches(student, reference.additive_scores, *states(draw, 2, ds=5, dh=5, da=5))


@promise(
    "additive_scores",
    en="With as many queries as keys, rows are still queries and columns are keys.",
    zh="查询和键一样多时，行仍是查询，列仍是键。",
)
def test_rows_are_queries_when_lengths_are_equal(student, draw):
    matches(student, reference.additive_scores, *states(draw, 2, lq=6, lk=6))


@promise("additive_scores", ANY_LEADING_AXES)
def test_any_leading_axes_of_states(student, draw):
    matches(student, reference.additive_scores, *states(draw))
    matches(student, reference.additive_scores, *states(draw, 2, 9, 3))


@promise(
    "additive_scores",
    en="However large the states are, the tanh keeps every score finite.",
    zh="状态再大，tanh 也让每个分数保持有限。",
)
def test_large_states_give_finite_scores(student, draw):
    matches(student, reference.additive_scores, *states(draw, 2, scale=3000.0))


@promise(
    "additive_scores",
    en="Gradients reach the states, both matrices and the vector, and are right.",
    zh="梯度传到状态、两个矩阵和向量，而且正确。",
)
def test_gradients_of_the_scores(student, draw):
    given = states(draw, 2)
    gradients_match(student, reference.additive_scores, *given, wrt=(0, 1, 2, 3, 4), cotangents=(draw(2, 4, 6),))


@promise("additive_scores", FLOAT32_AND_16_BITS)
def test_scores_in_lower_precision(student, draw):
    for dtype in (torch.float32, *LOW):
        matches(student, reference.additive_scores, *states(draw, 2, dtype=dtype))


@promise("additive_scores", INPUTS_STAY)
def test_states_are_left_alone(student, draw):
    left_alone(student, reference.additive_scores, *states(draw, 3))
    left_alone(student, reference.additive_scores, *states(draw))


def memory(draw, *lead, lq=4, lk=6, d=5, dv=7, dtype=torch.float64):
    """q, keys, values with pairwise distinct sizes."""
    return draw(*lead, lq, d, dtype=dtype), draw(*lead, lk, d, dtype=dtype), draw(*lead, lk, dv, dtype=dtype)


def quarters(draw, low, high):
    """A beta between two whole numbers, exact in every dtype."""
    return draw.integer(4 * low + 1, 4 * high - 1) / 4


@promise(
    "soft_lookup",
    en="The values are mixed by the softmax of beta · q·k over the keys.",
    zh="按 beta · q·k 沿键做的 softmax 混合各个值。",
    weight=2,
)
def test_values_are_mixed_by_resemblance(student, draw):
    matches(student, reference.soft_lookup, *memory(draw, 3), 2.5)
    matches(student, reference.soft_lookup, *memory(draw), 0.5)


@promise(
    "soft_lookup",
    en="beta is 1 by default; with beta = 0 every value counts the same.",
    zh="不给 beta 时它等于 1；beta = 0 时每个值一样重要。",
)
def test_the_default_beta_and_beta_zero(student, draw):
    given = memory(draw, 2)
    matches(student, reference.soft_lookup, *given)
    matches(student, reference.soft_lookup, *given, beta=0.0)


@promise(
    "soft_lookup",
    en="A larger beta makes the same lookup sharper.",
    zh="beta 越大，同一次查找越尖锐。",
)
def test_beta_sharpens(student, draw):
    given = memory(draw, 2)
    for beta in (0.25, quarters(draw, 2, 4), 8.0):
        matches(student, reference.soft_lookup, *given, beta=beta)


@promise(
    "soft_lookup",
    en="A very large beta gives the hard lookup, the value of the best key, without overflow.",
    zh="beta 很大时就是硬查找：取最佳键的值，而且不上溢。",
)
def test_a_very_large_beta_is_the_hard_lookup(student, draw):
    q = torch.stack([draw.permutation(6).double() / 2 for _ in range(4)])  # scores half a unit apart
    keys, values = torch.eye(6, dtype=torch.float64), draw(6, 7)
    for beta in (1.0, 3000.0):
        matches(student, reference.soft_lookup, q, keys, values, beta=beta)


@promise(
    "soft_lookup",
    en="With as many queries as keys, and values as wide as keys, no axis is taken for another.",
    zh="查询和键一样多、值和键一样宽时，各个轴也不会弄混。",
)
def test_equal_sizes_do_not_confuse(student, draw):
    matches(student, reference.soft_lookup, *memory(draw, 2, lq=5, lk=5, d=4, dv=4), beta=1.5)


@promise("soft_lookup", ANY_LEADING_AXES)
def test_any_leading_axes_of_the_memory(student, draw):
    matches(student, reference.soft_lookup, *memory(draw), beta=0.75)
    matches(student, reference.soft_lookup, *memory(draw, 2, 8, 3), beta=0.75)


@promise(
    "soft_lookup",
    en="Gradients reach the query, the keys and the values, and are right: a hard lookup has none.",
    zh="梯度传到查询、键和值，而且正确：硬查找做不到这一点。",
)
def test_gradients_of_the_lookup(student, draw):
    given = memory(draw, 2)
    gradients_match(student, reference.soft_lookup, *given, 1.25, wrt=(0, 1, 2), cotangents=(draw(2, 4, 7),))


@promise("soft_lookup", FLOAT32_AND_16_BITS)
def test_lookup_in_lower_precision(student, draw):
    for dtype in (torch.float32, *LOW):
        matches(student, reference.soft_lookup, *memory(draw, 2, dtype=dtype), beta=0.5)


@promise("soft_lookup", INPUTS_STAY)
def test_the_memory_is_left_alone(student, draw):
    left_alone(student, reference.soft_lookup, *memory(draw, 3), 2.5)


@promise(
    "path_and_cost",
    en="Attention: n²d multiplications, one sequential step, one step between any two tokens.",
    zh="注意力：n²d 次乘法，一个顺序步骤，任意两个词元之间一步。",
)
def test_attention_is_quadratic_and_direct(student, draw):
    for n in (draw.integer(20, 60), draw.integer(1000, 5000)):
        matches(student, reference.path_and_cost, "attention", n, draw.integer(64, 512))


@promise(
    "path_and_cost",
    en="Recurrence: nd² multiplications, n sequential steps, n steps from one end to the other.",
    zh="循环：nd² 次乘法，n 个顺序步骤，从一端到另一端 n 步。",
)
def test_recurrence_is_linear_and_slow(student, draw):
    for n in (draw.integer(20, 60), draw.integer(1000, 5000)):
        matches(student, reference.path_and_cost, "recurrent", n, draw.integer(64, 512))


@promise(
    "path_and_cost",
    en="Convolution: knd² multiplications, one sequential step, log_k n layers, rounded up.",
    zh="卷积：knd² 次乘法，一个顺序步骤，log_k n 层（向上取整）。",
)
def test_convolution_sees_a_window(student, draw):
    for k in (3, 7):
        n = k ** draw.integer(2, 3) + draw.integer(2, k)
        matches(student, reference.path_and_cost, "conv", n, draw.integer(64, 512), k)


@promise(
    "path_and_cost",
    en="At whole powers of k the number of layers is exact, and one token needs none.",
    zh="n 恰为 k 的整数次幂时层数精确；只有一个词元时一层也不需要。",
)
def test_whole_powers_of_the_window_are_exact(student, draw):
    d = draw.integer(5, 50)
    for n, k in ((125, 5), (124, 5), (126, 5), (243, 3), (2**15, 2), (2**15 + 1, 2), (1, draw.integer(3, 9))):
        matches(student, reference.path_and_cost, "conv", n, d, k=k)


@promise(
    "path_and_cost",
    en="Attention costs less than recurrence while the sequence is shorter than the vectors are wide, and more beyond.",
    zh="序列长度小于向量宽度时注意力比循环便宜，超过之后则更贵。",
)
def test_who_is_cheaper_depends_on_the_width(student, draw):
    d = draw.integer(200, 300)
    for n in (d // 3, 3 * d):
        for kind in ("attention", "recurrent"):
            matches(student, reference.path_and_cost, kind, n, d)


@promise("path_and_cost", UNKNOWN_KIND_IS_REFUSED)
def test_an_unknown_kind_is_refused(student, draw):
    n, d = draw.integer(30, 60), draw.integer(5, 20)
    matches(student, reference.path_and_cost, "attention", n, d)
    require(
        student.refuses("path_and_cost", "pooling", n, d),
        "path_and_cost: an unknown kind does not raise ValueError",
        "path_and_cost：未知的 kind 没有抛出 ValueError",
    )
