"""Chapter 4: wrong variances, wrong samples, wrong measures of saturation."""

import math

import torch

from autograder.reference import ch04_why_scale as right

from . import mistake

# score_variance


@mistake(
    "score_variance",
    en="The variance grows with d_k². Independent terms add their variances, so it grows with d_k.",
    zh="方差按 d_k² 增长。独立的项，方差相加，所以应按 d_k 增长。",
)
def squares_the_width(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return d_k * right.score_variance(d_k, var_q, var_k, mean_q, mean_k)


@mistake(
    "score_variance",
    en="This is the standard deviation. The variance is its square.",
    zh="这是标准差。方差是它的平方。",
)
def returns_the_standard_deviation(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return math.sqrt(right.score_variance(d_k, var_q, var_k, mean_q, mean_k))


@mistake(
    "score_variance",
    en="√d_k is used in place of d_k. √d_k is the standard deviation's factor; the variance has d_k.",
    zh="该用 d_k 的地方用了 √d_k。√d_k 是标准差的因子，方差的因子是 d_k。",
)
def takes_the_root_of_the_width(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return math.sqrt(d_k) * right.score_variance(1, var_q, var_k, mean_q, mean_k)


@mistake(
    "score_variance",
    en="This is the variance of one product, or of the scaled score. The dot product adds up d_k of them.",
    zh="这是一个乘积的方差，也就是缩放之后的方差。点积是 d_k 个乘积之和。",
)
def forgets_the_width(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return right.score_variance(1, var_q, var_k, mean_q, mean_k)


@mistake(
    "score_variance",
    en="The factor is d_k − 1. That correction belongs to a variance estimated from samples; here nothing is estimated.",
    zh="用了因子 d_k − 1。那个修正只用于从样本估计方差；这里是公式，没有估计。",
)
def loses_a_degree_of_freedom(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return right.score_variance(d_k - 1, var_q, var_k, mean_q, mean_k)


@mistake(
    "score_variance",
    en="The means are ignored. They move more than the centre: each mean also brings in the other side's variance.",
    zh="忽略了均值。均值不只是平移：每个均值都会把另一侧的方差也带进来。",
)
def ignores_the_means(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return d_k * var_q * var_k


@mistake(
    "score_variance",
    en="This is the mean square E[(qk)²], d_k times. Subtract the square of the mean, μq²μk².",
    zh="这是均方 E[(qk)²] 的 d_k 倍。还要减去均值的平方 μq²μk²。",
)
def returns_the_mean_square(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return d_k * (var_q + mean_q**2) * (var_k + mean_k**2)


@mistake(
    "score_variance",
    en="The square of the whole mean, (d_k·μq·μk)², is subtracted from d_k mean squares. Subtract μq²μk² for each "
    "coordinate, d_k times.",
    zh="从 d_k 个均方之和里减去了总均值的平方 (d_k·μq·μk)²。应当每个坐标各减 μq²μk²，共 d_k 个。",
)
def subtracts_the_square_of_the_whole_mean(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return d_k * (var_q + mean_q**2) * (var_k + mean_k**2) - (d_k * mean_q * mean_k) ** 2


@mistake(
    "score_variance",
    en="Each mean is paired with its own variance. It multiplies the variance of the other side: μq²σk² and μk²σq².",
    zh="每个均值配了自己那一侧的方差。应当乘另一侧的方差：μq²σk² 和 μk²σq²。",
)
def pairs_each_mean_with_its_own_variance(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return d_k * (var_q * var_k + mean_q**2 * var_q + mean_k**2 * var_k)


@mistake("score_variance", en="The means are not squared.", zh="均值没有平方。")
def forgets_to_square_the_means(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return d_k * (var_q * var_k + mean_q * var_k + mean_k * var_q)


@mistake(
    "score_variance",
    en="`var_q` and `var_k` are squared as if they were standard deviations. They are variances already.",
    zh="把 `var_q`、`var_k` 当作标准差又平方了一次。它们本来就是方差。",
)
def takes_variances_for_deviations(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return right.score_variance(d_k, var_q**2, var_k**2, mean_q, mean_k)


@mistake("score_variance", en="The result is a tensor. Return a plain number.", zh="结果是张量。请返回普通的数。")
def returns_a_tensor(d_k, var_q=1.0, var_k=1.0, mean_q=0.0, mean_k=0.0):
    return torch.tensor(right.score_variance(d_k, var_q, var_k, mean_q, mean_k))


# sample_scores


def _normal(generator, *shape):
    return torch.randn(*shape, generator=generator, device=generator.device)


@mistake(
    "sample_scores",
    en="The scores are divided by √d_k. Return the bare dot products.",
    zh="分数已经除以了 √d_k。这里要的是没有缩放的点积。",
)
def scales_the_scores(d_k, samples, generator):
    return right.sample_scores(d_k, samples, generator) / d_k**0.5


@mistake(
    "sample_scores",
    en="The products are averaged. A dot product adds them up.",
    zh="对乘积取了平均。点积是把它们加起来。",
)
def averages_the_products(d_k, samples, generator):
    return right.sample_scores(d_k, samples, generator) / d_k


@mistake(
    "sample_scores",
    en="The query is also the key. Then the mean is d_k instead of 0: draw the keys separately, from the same generator.",
    zh="键就是查询本身。这样均值是 d_k 而不是 0：键要用同一个生成器另外抽。",
)
def meets_itself(d_k, samples, generator):
    return _normal(generator, samples, d_k).square().sum(-1)


@mistake(
    "sample_scores",
    en="The generator is not used: with the seed fixed to 0 the numbers are always the same.",
    zh="没有使用传入的生成器：把种子固定为 0，得到的数永远相同。",
)
def fixes_the_seed(d_k, samples, generator):
    return right.sample_scores(d_k, samples, torch.Generator(generator.device).manual_seed(0))


@mistake(
    "sample_scores",
    en="The numbers are uniform in [0, 1) (rand). Use randn: mean 0 and variance 1.",
    zh="抽的是 [0, 1) 上的均匀分布（rand）。应当用 randn：均值 0，方差 1。",
)
def draws_uniform_numbers(d_k, samples, generator):
    q = torch.rand(samples, d_k, generator=generator, device=generator.device)
    return (q * torch.rand(samples, d_k, generator=generator, device=generator.device)).sum(-1)


@mistake(
    "sample_scores",
    en="The sum runs over the samples. Sum over the coordinates: one score for each row.",
    zh="沿样本求和了。应沿坐标求和：每行一个分数。",
)
def sums_over_the_samples(d_k, samples, generator):
    q, k = right.sample_pairs(d_k, samples, generator)
    return (q * k).sum(0)


@mistake(
    "sample_scores",
    en="Every query meets every key: [samples, samples]. Only row i with row i is needed.",
    zh="每个查询和每个键都算了一遍：[samples, samples]。只要第 i 行配第 i 行。",
)
def returns_every_pair(d_k, samples, generator):
    q, k = right.sample_pairs(d_k, samples, generator)
    return q @ k.T


@mistake(
    "sample_scores",
    en="The answer is right, but the whole table [samples, samples] is made and only its diagonal kept. "
    "Multiply row by row and sum.",
    zh="答案是对的，但先造出了整张 [samples, samples] 的表，只取对角线。应逐行相乘再求和。",
)
def keeps_the_diagonal_of_a_table(d_k, samples, generator):
    q, k = right.sample_pairs(d_k, samples, generator)
    return (q @ k.T).diagonal()


@mistake(
    "sample_scores",
    en="An axis of size 1 is left over. The shape is [samples].",
    zh="多留了一个大小为 1 的轴。形状应为 [samples]。",
)
def keeps_the_last_axis(d_k, samples, generator):
    return right.sample_scores(d_k, samples, generator)[:, None]


@mistake(
    "sample_scores",
    en="`squeeze()` without an axis also removes the axis of a single sample. Name the axis, or sum over it.",
    zh="不指定轴的 `squeeze()` 会把「只有一个样本」的轴也去掉。应当指明轴，或者直接对它求和。",
)
def squeezes_too_much(d_k, samples, generator):
    return right.sample_scores(d_k, samples, generator).squeeze()


@mistake(
    "sample_scores",
    en="The shape drawn is [d_k, samples]. The numbers then fall into other places: draw [samples, d_k].",
    zh="抽的形状是 [d_k, samples]，同样的数就落到了别的位置。应当抽 [samples, d_k]。",
)
def draws_the_transposed_shape(d_k, samples, generator):
    q, k = right.sample_pairs(samples, d_k, generator)
    return (q * k).sum(0)


@mistake(
    "sample_scores",
    en="Queries and keys are drawn in turn, row by row. Draw all queries first, then all keys.",
    zh="查询和键是一行一行轮流抽的。应当先抽全部查询，再抽全部键。",
)
def draws_row_by_row(d_k, samples, generator):
    return torch.stack([_normal(generator, d_k) @ _normal(generator, d_k) for _ in range(samples)])


# entropy


@mistake("entropy", en="The minus sign is missing: an entropy is never negative.", zh="缺少负号：熵不会是负数。")
def forgets_the_minus(weights):
    return -right.entropy(weights)


@mistake(
    "entropy",
    en="This is in bits (log₂). Use the natural logarithm.",
    zh="这是以比特为单位的熵（log₂）。请用自然对数。",
)
def measures_in_bits(weights):
    return right.entropy(weights) / math.log(2)


@mistake(
    "entropy",
    en="The terms are averaged over the keys. Sum them.",
    zh="对键取了平均。应当求和。",
)
def averages_over_the_keys(weights):
    return right.entropy(weights) / weights.shape[-1]


@mistake(
    "entropy",
    en="A weight of 0 gives NaN: 0 × log 0 is 0 × (−inf). By convention 0·log 0 = 0.",
    zh="权重为 0 时得到 NaN：0 × log 0 就是 0 × (−inf)。约定 0·log 0 = 0。",
)
def gives_nan_at_zero(weights):
    return -(weights * weights.log()).sum(-1)


@mistake(
    "entropy",
    en="A small number is added inside the logarithm. It changes every row; only a weight of exactly 0 needs care.",
    zh="在对数里加了一个小数。它让每一行都有偏差；只有恰好为 0 的权重才需要特别处理。",
)
def adds_an_epsilon(weights):
    return -(weights * (weights + 1e-9).log()).sum(-1)


@mistake(
    "entropy",
    en="The weights themselves are clamped, so a weight of 0 still adds something. Clamp only inside the logarithm, if at all.",
    zh="把权重本身截断了，于是权重 0 也有贡献。要截断也只在对数里面截断。",
)
def clamps_the_weights(weights):
    clamped = weights.clamp(min=1e-6)
    return -(clamped * clamped.log()).sum(-1)


@mistake(
    "entropy",
    en="The entropy is divided by log n, its largest value. Return it in nats.",
    zh="把熵除以了它的最大值 log n。请直接返回以 nat 为单位的熵。",
)
def divides_by_the_largest_entropy(weights):
    return right.entropy(weights) / math.log(weights.shape[-1])


@mistake(
    "entropy",
    en="The weights go through softmax a second time. They are weights already.",
    zh="权重又过了一遍 softmax。它们已经是权重了。",
)
def softens_the_weights_again(weights):
    return right.entropy(torch.softmax(weights, -1))


@mistake(
    "entropy",
    en="The weights are divided by their sum. A row of zeros then gives 0/0, and the gradient is another one.",
    zh="又把权重除以了它们的和。整行为 0 时就是 0/0，梯度也变了。",
)
def normalises_again(weights):
    return right.entropy(weights / weights.sum(-1, keepdim=True))


@mistake(
    "entropy",
    en="The sum runs over the queries. Each row is a distribution: sum along the last axis.",
    zh="沿查询轴求和了。每一行才是一个分布：应沿最后一个轴求和。",
)
def sums_over_the_queries(weights):
    return right.entropy(weights.transpose(-2, -1))


@mistake(
    "entropy",
    en="The entropies are averaged over all rows. Return one for each row.",
    zh="对所有行取了平均。应当每行返回一个熵。",
)
def averages_over_the_rows(weights):
    return right.entropy(weights).mean()


@mistake(
    "entropy",
    en="This is the perplexity, the exponential of the entropy.",
    zh="这是困惑度，即熵的指数。",
)
def returns_the_perplexity(weights):
    return right.entropy(weights).exp()


@mistake(
    "entropy",
    en="Zeros are overwritten in the weights you were given. Work on a copy: masked_fill without the underscore.",
    zh="在传入的权重上直接改写了 0。应当在副本上做：用不带下划线的 masked_fill。",
)
def overwrites_the_zeros(weights):
    weights.detach().masked_fill_(weights == 0, 1.0)
    return right.entropy(weights)


@mistake(
    "entropy",
    en="The result is always float32. Return the dtype of the weights.",
    zh="结果总是 float32。应与权重的 dtype 相同。",
)
def returns_float32(weights):
    return right.entropy(weights.float())


@mistake(
    "entropy",
    en="The result is no longer connected to the weights (detach, item, NumPy): no gradient flows.",
    zh="结果和权重断开了（detach、item 或 NumPy）：梯度传不回去。",
)
def cuts_the_gradient(weights):
    return right.entropy(weights.detach())


# dead_rows


def _share(rows):
    return rows.double().mean().item()


@mistake(
    "dead_rows",
    en="A weight equal to the threshold is counted. It must exceed it: > and not ≥.",
    zh="等于阈值的权重也算了进去。应当是超过：用 > 而不是 ≥。",
)
def counts_the_threshold_itself(weights, threshold=0.99):
    return _share(weights.amax(-1) >= threshold)


@mistake(
    "dead_rows",
    en="This is the share of the other rows, those that are alive.",
    zh="算成了另一半：没有死的行所占的比例。",
)
def counts_the_living(weights, threshold=0.99):
    return 1 - right.dead_rows(weights, threshold)


@mistake(
    "dead_rows",
    en="This is the number of dead rows. Divide by the number of rows.",
    zh="这是死行的个数。还要除以总行数。",
)
def returns_a_count(weights, threshold=0.99):
    return float((weights.amax(-1) > threshold).sum())


@mistake(
    "dead_rows",
    en="All weights are counted, not rows. Take the largest weight of each row first.",
    zh="数的是所有权重，而不是行。应当先取每行最大的权重。",
)
def counts_entries(weights, threshold=0.99):
    return _share(weights > threshold)


@mistake(
    "dead_rows",
    en="The largest weight is taken over the queries. A row is what lies along the last axis.",
    zh="沿查询轴取了最大值。一行是沿最后一个轴的那些权重。",
)
def looks_down_the_columns(weights, threshold=0.99):
    return _share(weights.amax(-2) > threshold)


@mistake(
    "dead_rows",
    en="The result is a tensor. Return a Python float: `.item()`.",
    zh="结果是张量。请用 `.item()` 返回 Python 的 float。",
)
def leaves_it_a_tensor(weights, threshold=0.99):
    return (weights.amax(-1) > threshold).float().mean()


@mistake("dead_rows", en="`threshold` is ignored: it is always 0.99.", zh="忽略了 `threshold`：总是用 0.99。")
def fixes_the_threshold(weights, threshold=0.99):
    return right.dead_rows(weights)


@mistake(
    "dead_rows",
    en="This is the mean of the largest weights. A mean hides how many rows are dead: compare each row, then count.",
    zh="这是各行最大权重的平均。平均数看不出有多少行死了：应当逐行比较，再计数。",
)
def averages_the_largest_weights(weights, threshold=0.99):
    return weights.amax(-1).double().mean().item()


@mistake(
    "dead_rows",
    en="Rows of zeros are left out of the count. They are rows too.",
    zh="总行数里漏掉了全 0 的行。它们也是行。",
)
def leaves_empty_rows_out(weights, threshold=0.99):
    return right.dead_rows(weights[weights.any(-1)], threshold)


@mistake(
    "dead_rows",
    en="Rows of zeros are counted as dead. Their largest weight is 0, which exceeds nothing.",
    zh="把全 0 的行也算成了死行。它们最大的权重是 0，没有超过阈值。",
)
def counts_empty_rows_as_dead(weights, threshold=0.99):
    return _share((weights.amax(-1) > threshold) | ~weights.any(-1))


@mistake(
    "dead_rows",
    en="Only the queries of one sequence are in the denominator. Divide by all rows, over all leading axes.",
    zh="分母只算了一个序列的查询数。应当除以所有行的总数，包括前面所有的轴。",
)
def divides_by_one_sequence(weights, threshold=0.99):
    dead = (weights.amax(-1) > threshold).sum().item()
    return dead / (weights.shape[-2] if weights.ndim > 1 else 1)
