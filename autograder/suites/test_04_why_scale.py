"""Chapter 4: why divide by √d_k."""

import torch

from autograder.exam import agree, gradients_match, grows_at_most, left_alone, matches, promise
from autograder.exam.sentences import ANY_LEADING_AXES, DTYPE_IN_IS_DTYPE_OUT
from autograder.reference import ch04_why_scale as reference

LENGTHS = (32, 128, 512)

# score_variance: all numbers are short binary fractions and all variances are squares, so every right formula is exact


def spreads(draw):
    """Two different variances, neither of them 1."""
    return (draw.integer(3, 5) / 2) ** 2, (draw.integer(6, 8) / 2) ** 2


def centres(draw):
    """Two different means of different sign, neither of them ±1."""
    return -draw.integer(3, 4) / 2, draw.integer(5, 7) / 2


@promise(
    "score_variance",
    en="With means 0 the variance is d_k times both variances; with unit variances it is d_k.",
    zh="均值为 0 时，方差等于 d_k 乘以两个方差；单位方差时就是 d_k。",
)
def test_variances_multiply_and_the_width_counts_once(student, draw):
    d_k = draw.integer(5, 48)
    matches(student, reference.score_variance, d_k)
    matches(student, reference.score_variance, d_k, *spreads(draw))


@promise(
    "score_variance",
    en="A nonzero mean on one side brings in the variance of the other side.",
    zh="一侧的均值不为 0 时，另一侧的方差也会计入。",
)
def test_a_mean_lets_the_other_variance_through(student, draw):
    d_k, (var_q, var_k), (mean_q, mean_k) = draw.integer(5, 48), spreads(draw), centres(draw)
    matches(student, reference.score_variance, d_k, var_q, var_k, mean_q=mean_q)
    matches(student, reference.score_variance, d_k, var_q, var_k, mean_k=mean_k)


@promise(
    "score_variance",
    en="Two means at once: the variance is not the mean square.",
    zh="两侧都有均值：方差不等于均方。",
)
def test_two_means_at_once(student, draw):
    matches(student, reference.score_variance, draw.integer(5, 48), *spreads(draw), *centres(draw))
    mean_q, mean_k = centres(draw)
    matches(student, reference.score_variance, draw.integer(5, 48), mean_k=mean_q, mean_q=mean_k)


@promise(
    "score_variance",
    en="A constant query still gives varying scores; two constants give variance 0.",
    zh="查询是常数时，分数仍会变化；两边都是常数时，方差为 0。",
)
def test_a_constant_query(student, draw):
    d_k, (_, var_k), (mean_q, mean_k) = draw.integer(5, 48), spreads(draw), centres(draw)
    matches(student, reference.score_variance, d_k, 0.0, var_k, mean_q, mean_k)
    matches(student, reference.score_variance, d_k, 0.0, 0.0, mean_q, mean_k)


# sample_scores


def scores_of(q, k):
    return (q * k).sum(-1)


scores_of.__name__ = "sample_scores"  # the name that messages use


def scores_match(student, d_k, samples, seeded):
    """The student's scores are the dot products of the pairs that this generator gives."""
    found = student.sample_scores(d_k, samples, seeded)
    q, k = reference.sample_pairs(d_k, samples, seeded.generator(student.device))
    agree(found, scores_of, q.cpu(), k.cpu())


@promise(
    "sample_scores",
    en="Draw all queries, then all keys, from the generator; return one dot product per row.",
    zh="用给定的生成器先抽全部查询，再抽全部键；每行返回一个点积。",
    weight=2,
)
def test_one_dot_product_a_row(student, draw):
    scores_match(student, 5, 7, draw.seeded())
    scores_match(student, 9, 2 * draw.integer(8, 15) + 1, draw.seeded())


@promise(
    "sample_scores",
    en="With seed 0 and d_k = 64 the numbers are those of the chapter.",
    zh="种子为 0、d_k = 64 时，得到的正是本章的那些数。",
)
def test_the_numbers_of_the_chapter(student, draw):
    chapter = draw.seeded()
    chapter.seed = 0
    scores_match(student, 64, 301, chapter)
    scores_match(student, 64, 101, draw.seeded())


@promise(
    "sample_scores",
    en="One sample is still a vector, and so is a single coordinate.",
    zh="只有一个样本时，结果仍是向量；只有一个坐标时也一样。",
)
def test_one_sample_and_one_coordinate(student, draw):
    scores_match(student, 6, 1, draw.seeded())
    scores_match(student, 1, 11, draw.seeded())


@promise(
    "sample_scores",
    en="Twice the samples take twice the memory, not four times.",
    zh="样本加倍，内存也只加倍，而不是变成四倍。",
)
def test_memory_grows_with_the_samples(student, draw):
    scores_match(student, 5, 33, draw.seeded())
    seeded = draw.seeded()
    grows_at_most(student, "sample_scores", lambda n: (5, n, seeded), lengths=LENGTHS, power=1, what="largest")


# entropy


def weights_of(draw, *shape, dtype=torch.float64):
    return torch.softmax(draw(*shape), -1).to(dtype)


def with_zeros(draw, *shape):
    """Weights under a mask: every row has a 0, and the very last row is all 0."""
    weights = torch.softmax(draw(*shape).masked_fill(~draw.mask(*shape), -torch.inf), -1)
    weights.view(-1, shape[-1])[-1] = 0.0
    return weights


@promise(
    "entropy",
    en="−Σ p log p with the natural logarithm, one number per row: equal weights give log n.",
    zh="−Σ p log p，自然对数，每行一个数；权重相等时得 log n。",
    weight=2,
)
def test_entropy_in_nats(student, draw):
    n = draw.integer(5, 9)
    matches(student, reference.entropy, torch.full((2, 3, n), 1 / n, dtype=torch.float64))
    matches(student, reference.entropy, weights_of(draw, 4, 7))


@promise("entropy", ANY_LEADING_AXES)
def test_entropy_of_any_leading_axes(student, draw):
    matches(student, reference.entropy, weights_of(draw, 2, 3, 4, 5))
    matches(student, reference.entropy, weights_of(draw, 6))


@promise(
    "entropy",
    en="A weight of exactly 0 adds nothing: 0·log 0 = 0. A row of zeros has entropy 0.",
    zh="恰好为 0 的权重不起作用：0·log 0 = 0。整行为 0 时，熵为 0。",
    weight=2,
)
def test_zero_weights_add_nothing(student, draw):
    matches(student, reference.entropy, with_zeros(draw, 2, 3, 5))
    certain = torch.zeros(3, 4, dtype=torch.float64)
    certain[:, draw.integer(0, 3)] = 1.0
    certain[1] = weights_of(draw, 4)
    matches(student, reference.entropy, certain)


@promise("entropy", en="The weights stay as they were.", zh="传入的权重不被改动。")
def test_the_weights_are_left_alone(student, draw):
    left_alone(student, reference.entropy, with_zeros(draw, 3, 5))


@promise("entropy", DTYPE_IN_IS_DTYPE_OUT)
def test_entropy_keeps_the_dtype(student, draw):
    for dtype in (torch.float32, torch.bfloat16):
        matches(student, reference.entropy, weights_of(draw, 3, 5, dtype=dtype))


@promise("entropy", en="The gradient is −log p − 1.", zh="梯度是 −log p − 1。")
def test_the_gradient_of_the_entropy(student, draw):
    gradients_match(student, reference.entropy, weights_of(draw, 2, 3, 5), wrt=[0], cotangents=[draw(2, 3)])


# dead_rows: the number of rows is a power of two, so a mean is exact in any dtype


def peaked(draw, n, peaks, dtype=torch.float64):
    """One row of n weights for each peak, in any order; the rest is shared out equally."""
    peaks = torch.tensor(peaks, dtype=torch.float64)[:, None]
    weights = ((1 - peaks) / (n - 1)).expand(-1, n).clone()
    weights.scatter_(1, torch.stack([draw.permutation(n)[:1] for _ in peaks]), peaks)
    return weights[draw.permutation(len(weights))].to(dtype)


def mixed(draw, n, dead, dtype=torch.float64):
    """Eight rows, `dead` of them above 0.99; the others reach at most 0.985."""
    above = [0.992 + 0.001 * draw.integer(0, 8) for _ in range(dead)]
    below = [0.985, *(0.5 + 0.01 * draw.integer(5, 48) for _ in range(7 - dead))]
    return peaked(draw, n, above + below, dtype)


@promise(
    "dead_rows",
    en="The share of rows whose largest weight exceeds 0.99, over all leading axes.",
    zh="最大权重超过 0.99 的行所占的比例，前面所有的轴一起算。",
    weight=2,
)
def test_the_share_of_rows_above_the_threshold(student, draw):
    matches(student, reference.dead_rows, mixed(draw, 5, draw.integer(1, 3)))
    matches(student, reference.dead_rows, mixed(draw, 7, draw.integer(5, 6)).view(4, 2, 7))


@promise(
    "dead_rows",
    en="`threshold` is obeyed, and a weight equal to it does not exceed it.",
    zh="遵守 `threshold`；恰好等于阈值不算超过。",
)
def test_a_weight_equal_to_the_threshold_is_not_above_it(student, draw):
    weights = peaked(draw, 5, [0.75, 0.75, 0.875, 0.8, 0.9, 0.5, 0.6, 0.25])
    matches(student, reference.dead_rows, weights, 0.75)
    matches(student, reference.dead_rows, weights.view(4, 2, 5), threshold=0.875)


@promise(
    "dead_rows",
    en="A row of zeros is a row, and it is not dead.",
    zh="全 0 的行也算一行，而且不算死行。",
)
def test_a_row_of_zeros_is_a_row(student, draw):
    weights = mixed(draw, 3, 3)
    weights[(weights.amax(-1) < 0.98).nonzero()[0]] = 0.0
    matches(student, reference.dead_rows, weights)
    matches(student, reference.dead_rows, weights.view(2, 4, 3), threshold=0.875)


@promise(
    "dead_rows",
    en="Works in float32 and bfloat16 and for a single row; the weights stay as they were.",
    zh="float32 和 bfloat16 也行，只有一行也行，且传入的权重不被改动。",
)
def test_dead_rows_in_other_dtypes(student, draw):
    left_alone(student, reference.dead_rows, mixed(draw, 6, 3, torch.float32))
    low = peaked(draw, 3, [1.0, 1.0, 0.9, 0.7, 0.8, 0.6, 0.5, 0.75], torch.bfloat16)
    matches(student, reference.dead_rows, low)
    matches(student, reference.dead_rows, peaked(draw, 5, [0.999])[0])
