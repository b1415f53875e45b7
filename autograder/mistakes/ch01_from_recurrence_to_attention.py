"""Chapter 1: scores, lookups and costs that are not what they seem."""

import math

import torch

from autograder.reference import ch01_from_recurrence_to_attention as right

from . import mistake

# additive_scores


def _sums(s, h, Wa, Ua):
    return (s @ Wa.T).unsqueeze(-2) + (h @ Ua.T).unsqueeze(-3)


@mistake(
    "additive_scores",
    en="The tanh is missing. Without it the score splits into a part of s and a part of h, and softmax cancels the part of s: "
    "every query gets the same weights.",
    zh="少了 tanh。没有它，分数会拆成只含 s 的一项和只含 h 的一项，softmax 又把含 s 的那项消掉：每个查询的权重都一样。",
)
def forgets_the_tanh(s, h, Wa, Ua, va):
    return _sums(s, h, Wa, Ua) @ va


@mistake(
    "additive_scores",
    en="va comes before the tanh: the finished score is squashed. First the tanh, then the product with va.",
    zh="va 用在了 tanh 之前：被压缩的是算好的分数。应先取 tanh，再与 va 相乘。",
)
def squashes_the_finished_score(s, h, Wa, Ua, va):
    return torch.tanh(_sums(s, h, Wa, Ua) @ va)


@mistake(
    "additive_scores",
    en="va is inside the tanh, feature by feature. It weighs the features after the tanh.",
    zh="va 逐个特征地乘在了 tanh 里面。它应在 tanh 之后给各个特征加权。",
)
def puts_va_inside_the_tanh(s, h, Wa, Ua, va):
    return torch.tanh(_sums(s, h, Wa, Ua) * va).sum(-1)


@mistake(
    "additive_scores",
    en="Each side has its own tanh. Add first: it is the tanh of the sum that lets s and h meet.",
    zh="两边各自取了 tanh。应先相加：正是「和的 tanh」让 s 与 h 相遇。",
)
def takes_the_tanh_of_each_side(s, h, Wa, Ua, va):
    return (torch.tanh(s @ Wa.T).unsqueeze(-2) + torch.tanh(h @ Ua.T).unsqueeze(-3)) @ va


@mistake(
    "additive_scores",
    en="The new axes are exchanged: the queries lie along the columns. The result must be [..., Lq, Lk], one row for each query.",
    zh="新轴放反了：查询排到了列上。结果应为 [..., Lq, Lk]，一个查询一行。",
)
def spreads_the_queries_over_the_columns(s, h, Wa, Ua, va):
    return right.additive_scores(s, h, Wa, Ua, va).transpose(-2, -1)


@mistake(
    "additive_scores",
    en="The pairs are listed in one order and folded up in another: use repeat_interleave for s and repeat for h, not the reverse.",
    zh="配对时是一种顺序，折回矩阵时是另一种：s 用 repeat_interleave，h 用 repeat，不要反过来。",
)
def folds_the_pairs_in_the_wrong_order(s, h, Wa, Ua, va):
    scores = right.additive_scores(s, h, Wa, Ua, va)
    return scores.transpose(-2, -1).reshape(scores.shape)


@mistake(
    "additive_scores",
    en="The new axes are put in from the left, which works only without a batch. Count from the right: unsqueeze(-2) and unsqueeze(-3).",
    zh="新轴是从左边数着插入的，没有批次轴时才对。应从右边数：unsqueeze(-2) 和 unsqueeze(-3)。",
)
def counts_axes_from_the_left(s, h, Wa, Ua, va):
    return torch.tanh((s @ Wa.T)[:, None] + (h @ Ua.T)[None]) @ va


@mistake(
    "additive_scores",
    en="The two matrices are exchanged: Wa belongs to s, Ua to h.",
    zh="两个矩阵用反了：Wa 作用于 s，Ua 作用于 h。",
)
def exchanges_the_matrices(s, h, Wa, Ua, va):
    return right.additive_scores(s, h, Ua, Wa, va)


@mistake(
    "additive_scores",
    en="The matrices are not transposed. They follow nn.Linear, [out, in]: y = x Wᵀ.",
    zh="矩阵没有转置。它们与 nn.Linear 一样是 [out, in]：y = x Wᵀ。",
)
def does_not_transpose_the_matrices(s, h, Wa, Ua, va):
    return torch.tanh((s @ Wa).unsqueeze(-2) + (h @ Ua).unsqueeze(-3)) @ va


@mistake(
    "additive_scores",
    en="The softmax has been taken already. Return the scores themselves.",
    zh="已经做了 softmax。应返回分数本身。",
)
def normalises_already(s, h, Wa, Ua, va):
    return torch.softmax(right.additive_scores(s, h, Wa, Ua, va), -1)


@mistake(
    "additive_scores",
    en="A sigmoid stands where the tanh belongs.",
    zh="该用 tanh 的地方用了 sigmoid。",
)
def uses_a_sigmoid(s, h, Wa, Ua, va):
    return torch.sigmoid(_sums(s, h, Wa, Ua)) @ va


@mistake(
    "additive_scores",
    en="The scores are divided by a square root, as in chapter 3. The tanh bounds them already: additive scores are not scaled.",
    zh="像第 3 章那样除以了平方根。tanh 已经限制了大小：加性分数不缩放。",
)
def scales_like_a_dot_product(s, h, Wa, Ua, va):
    return right.additive_scores(s, h, Wa, Ua, va) / va.shape[-1] ** 0.5


@mistake(
    "additive_scores",
    en="The two projections are multiplied. That is a dot-product score; the additive one adds them.",
    zh="把两个投影相乘了。那是点积打分；加性打分是把它们相加。",
)
def multiplies_instead_of_adding(s, h, Wa, Ua, va):
    return torch.tanh((s @ Wa.T).unsqueeze(-2) * (h @ Ua.T).unsqueeze(-3)) @ va


@mistake(
    "additive_scores",
    en="An axis of size 1 is left at the end. va is a vector: the product with it removes the last axis.",
    zh="末尾多留了一个大小为 1 的轴。va 是向量：与它相乘会去掉最后一个轴。",
)
def leaves_an_axis_of_size_one(s, h, Wa, Ua, va):
    return right.additive_scores(s, h, Wa, Ua, va).unsqueeze(-1)


@mistake(
    "additive_scores",
    en="tanh is written with exponentials, which overflow: inf/inf is NaN. Use torch.tanh.",
    zh="用指数手写的 tanh 会上溢：inf/inf 是 NaN。请用 torch.tanh。",
)
def writes_tanh_with_exponentials(s, h, Wa, Ua, va):
    sums = _sums(s, h, Wa, Ua)
    return ((sums.exp() - (-sums).exp()) / (sums.exp() + (-sums).exp())) @ va


# soft_lookup


def _dots(q, keys):
    return q @ keys.transpose(-2, -1)


@mistake(
    "soft_lookup",
    en="The softmax runs over the queries. Each query shares its weight out over the keys: the last axis.",
    zh="softmax 沿查询轴做了。每个查询把权重分给各个键：应沿最后一个轴。",
)
def takes_the_softmax_over_the_queries(q, keys, values, beta=1.0):
    return torch.softmax(beta * _dots(q, keys), -2) @ values


@mistake(
    "soft_lookup",
    en="The scores are divided by beta. beta multiplies: it is the inverse of a temperature.",
    zh="分数除以了 beta。应当乘以 beta：它是温度的倒数。",
)
def divides_by_beta(q, keys, values, beta=1.0):
    return torch.softmax(_dots(q, keys) / beta, -1) @ values


@mistake(
    "soft_lookup",
    en="beta is ignored.",
    zh="没有使用 beta。",
)
def ignores_beta(q, keys, values, beta=1.0):
    return right.soft_lookup(q, keys, values)


@mistake(
    "soft_lookup",
    en="beta = 0 is taken for a missing beta: `beta or 1.0` gives 1. With beta = 0 every value counts the same.",
    zh="把 beta = 0 当成没有给：`beta or 1.0` 得到 1。beta = 0 时，每个值应一样重要。",
)
def takes_zero_for_missing(q, keys, values, beta=1.0):
    return right.soft_lookup(q, keys, values, beta or 1.0)


@mistake(
    "soft_lookup",
    en="The weights are multiplied by beta after the softmax: they no longer sum to 1. beta belongs inside.",
    zh="在 softmax 之后才乘 beta：权重之和不再是 1。beta 应放在里面。",
)
def multiplies_the_weights_by_beta(q, keys, values, beta=1.0):
    return beta * right.soft_lookup(q, keys, values)


@mistake(
    "soft_lookup",
    en="This is the hard lookup: only the best key answers, whatever beta is, and no gradient reaches query or keys.",
    zh="这是硬查找：不管 beta 是多少，只有最佳的键作答，查询和键得不到梯度。",
)
def looks_up_hard(q, keys, values, beta=1.0):
    best = (beta * _dots(q, keys)).argmax(-1)
    return torch.nn.functional.one_hot(best, keys.shape[-2]).to(values.dtype) @ values


@mistake(
    "soft_lookup",
    en="The scores are divided by √d. That is chapter 3; here beta alone sets the scale.",
    zh="分数除以了 √d。那是第 3 章的事；这里只由 beta 决定尺度。",
)
def divides_by_the_root_of_the_width(q, keys, values, beta=1.0):
    return right.soft_lookup(q / q.shape[-1] ** 0.5, keys, values, beta)


@mistake(
    "soft_lookup",
    en="The softmax is missing: the raw scores weigh the values.",
    zh="少了 softmax：直接用分数给值加权。",
)
def forgets_the_softmax(q, keys, values, beta=1.0):
    return beta * _dots(q, keys) @ values


@mistake(
    "soft_lookup",
    en="The scores are divided by their sum, without the exponential: weights turn negative, or explode when the sum is near 0.",
    zh="分数直接除以它们的和，没有取指数：权重会变负；和接近 0 时还会爆炸。",
)
def normalises_without_the_exponential(q, keys, values, beta=1.0):
    scores = beta * _dots(q, keys)
    return scores / scores.sum(-1, keepdim=True) @ values


@mistake(
    "soft_lookup",
    en="The exponentials overflow when beta is large: inf/inf is NaN. Take the largest score away first, or use torch.softmax.",
    zh="beta 很大时指数上溢：inf/inf 是 NaN。应先减去最大的分数，或使用 torch.softmax。",
)
def overflows_when_beta_is_large(q, keys, values, beta=1.0):
    shares = (beta * _dots(q, keys)).exp()
    return shares / shares.sum(-1, keepdim=True) @ values


@mistake(
    "soft_lookup",
    en="A small number is added to the sum of the exponentials. The sum is never 0 here, and the weights no longer sum to 1.",
    zh="在指数之和上加了一个小数。这里的和不会是 0，这样一来权重之和反而不再是 1。",
)
def adds_an_epsilon_to_the_sum(q, keys, values, beta=1.0):
    scores = beta * _dots(q, keys)
    shares = (scores - scores.amax(-1, keepdim=True)).exp()
    return shares / (shares.sum(-1, keepdim=True) + 1e-9) @ values


@mistake(
    "soft_lookup",
    en="Keys and queries are brought to length 1 first. The lookup compares by the plain dot product, not by the cosine.",
    zh="先把键和查询缩放到了长度 1。这里比较用的是点积本身，不是余弦。",
)
def compares_by_the_cosine(q, keys, values, beta=1.0):
    return right.soft_lookup(q / q.norm(dim=-1, keepdim=True), keys / keys.norm(dim=-1, keepdim=True), values, beta)


@mistake(
    "soft_lookup",
    en="The sign is wrong: the worst key gets the most weight.",
    zh="符号错了：最不像的键反而权重最大。",
)
def prefers_the_worst_key(q, keys, values, beta=1.0):
    return right.soft_lookup(-q, keys, values, beta)


@mistake(
    "soft_lookup",
    en="The keys are mixed instead of the values. Keys are compared, values are handed over.",
    zh="混合的是键，而不是值。键用来比较，值才是交出去的。",
)
def mixes_the_keys(q, keys, values, beta=1.0):
    return right.soft_lookup(q, keys, keys, beta)


@mistake(
    "soft_lookup",
    en="The weights are returned. Mix the values by them.",
    zh="返回的是权重。还要用它们混合值。",
)
def returns_the_weights(q, keys, values, beta=1.0):
    return torch.softmax(beta * _dots(q, keys), -1)


@mistake(
    "soft_lookup",
    en="`.T` turns all axes around, so it works only without a batch. Use keys.transpose(-2, -1).",
    zh="`.T` 会把所有轴都倒过来，没有批次轴时才对。应使用 keys.transpose(-2, -1)。",
)
def turns_all_axes_around(q, keys, values, beta=1.0):
    return torch.softmax(beta * (q @ keys.permute(*reversed(range(keys.dim())))), -1) @ values


@mistake(
    "soft_lookup",
    en="The query is multiplied by beta in place: its owner now holds another query. Write `q = q * beta`, not `q *= beta`.",
    zh="原地把查询乘以了 beta：它的主人手里的查询也变了。应写 `q = q * beta`，不要写 `q *= beta`。",
)
def changes_the_query_in_place(q, keys, values, beta=1.0):
    q *= beta
    return right.soft_lookup(q, keys, values)


# path_and_cost


def _but(kind, **changed):
    """The right answer with some entries of one kind changed."""
    return lambda asked, n, d, k=None: {
        **right.path_and_cost(asked, n, d, k),
        **({name: entry(n, d, k) for name, entry in changed.items()} if asked == kind else {}),
    }


@mistake(
    "path_and_cost",
    en="The width is forgotten: n², n and kn. Each entry also carries a d or a d², which decides who is cheaper.",
    zh="忘了宽度：写成了 n²、n 和 kn。每一项还带有 d 或 d²，谁更便宜正由它决定。",
)
def forgets_the_width(kind, n, d, k=None):
    return right.path_and_cost(kind, n, 1, k)


@mistake(
    "path_and_cost",
    en="Attention is given a constant cost. Only its path is constant: the layer still compares all pairs, n²d.",
    zh="把注意力的代价写成了常数。常数的只是路径：这一层仍要比较所有的词元对，n²d。",
)
def takes_a_constant_path_for_a_constant_cost(kind, n, d, k=None):
    return _but("attention", multiplies=lambda n, d, k: 1)(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="n²d and nd² are exchanged: attention squares the length, recurrence the width.",
    zh="n²d 与 nd² 写反了：注意力是长度的平方，循环是宽度的平方。",
)
def exchanges_the_squares(kind, n, d, k=None):
    if kind == "attention":
        return _but(kind, multiplies=lambda n, d, k: n * d * d)(kind, n, d, k)
    return _but("recurrent", multiplies=lambda n, d, k: n * n * d)(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="Additions are counted too. The table counts multiplications: no factor 2.",
    zh="把加法也数进去了。表里只数乘法：没有因子 2。",
)
def counts_the_additions_too(kind, n, d, k=None):
    return _but(kind, multiplies=lambda n, d, k: 2 * right.path_and_cost(kind, n, d, k)["multiplies"])(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="Attention's two products are counted apart: 2n²d. True, but the table gives the leading term without constants: n²d.",
    zh="把注意力的两次乘积分别计数：2n²d。这没有错，但表里只写不带常数的主项：n²d。",
)
def counts_both_products_of_attention(kind, n, d, k=None):
    return _but("attention", multiplies=lambda n, d, k: 2 * n * n * d)(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="The projections are added to attention, 4nd². The table leaves them out.",
    zh="给注意力加上了投影的 4nd²。表里不含它们。",
)
def adds_the_projections(kind, n, d, k=None):
    return _but("attention", multiplies=lambda n, d, k: n * n * d + 4 * n * d * d)(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="The convolution has lost its k: every output reads k positions, knd².",
    zh="卷积漏了 k：每个输出要读 k 个位置，knd²。",
)
def forgets_the_window_in_the_cost(kind, n, d, k=None):
    return _but("conv", multiplies=lambda n, d, k: n * d * d)(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="The convolution is computed one position after another. Its windows do not wait for each other: one sequential step.",
    zh="让卷积一个位置接一个位置地算。各个窗口互不等待：一个顺序步骤。",
)
def slides_the_window_step_by_step(kind, n, d, k=None):
    return _but("conv", sequential=lambda n, d, k: n)(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="Attention is given n sequential steps. No query waits for another: one step.",
    zh="给注意力写了 n 个顺序步骤。查询之间互不等待：一步。",
)
def asks_one_query_after_another(kind, n, d, k=None):
    return _but("attention", sequential=lambda n, d, k: n)(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="The path of the recurrence is 1, as for neighbours. Count the longest: from the first token to the last, n.",
    zh="把循环的路径写成了 1，那只是相邻两步。要数最长的：从第一个词元到最后一个，n。",
)
def counts_the_path_between_neighbours(kind, n, d, k=None):
    return _but("recurrent", path=lambda n, d, k: 1)(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="The logarithm is taken in floating point: log_5 125 comes out a little above 3 and is rounded up to 4. Count with whole numbers.",
    zh="对数是用浮点算的：log_5 125 略大于 3，向上取整成了 4。请用整数来数。",
)
def rounds_a_floating_logarithm_up(kind, n, d, k=None):
    return _but("conv", path=lambda n, d, k: math.ceil(math.log(n) / math.log(k)))(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="The number of layers is rounded down. A layer is needed whole: round up.",
    zh="层数向下取整了。层只能是整的：应向上取整。",
)
def rounds_down(kind, n, d, k=None):
    def layers(n, d, k):
        found = right.path_and_cost("conv", n, d, k)["path"]
        return found if k**found == n else found - 1

    return _but("conv", path=layers)(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="The path is n/k: that is a stack of plain windows. Table 1 lets each layer widen the reach k-fold: log_k n.",
    zh="路径写成了 n/k：那是普通窗口的堆叠。表 1 中每一层把可及范围扩大 k 倍：log_k n。",
)
def stacks_windows_without_dilation(kind, n, d, k=None):
    return _but("conv", path=lambda n, d, k: -(-n // k))(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="The logarithm has base 2. Its base is the window k.",
    zh="对数以 2 为底了。底应是窗口 k。",
)
def takes_the_logarithm_to_base_two(kind, n, d, k=None):
    return _but("conv", path=lambda n, d, k: (n - 1).bit_length())(kind, n, d, k)


@mistake(
    "path_and_cost",
    en="An unknown kind returns None: no branch fits and the function ends silently. Raise ValueError.",
    zh="未知的 kind 返回了 None：没有分支符合，函数就悄悄结束了。应抛出 ValueError。",
)
def falls_through_in_silence(kind, n, d, k=None):
    return right.path_and_cost(kind, n, d, k) if kind in ("attention", "recurrent", "conv") else None
