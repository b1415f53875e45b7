"""Chapter 3: attention that mixes the wrong things, in the wrong proportion, or goes back the wrong way."""

import torch

from autograder.reference import ch03_scaled_dot_product as right

from . import mistake

# attention_loops


def _matrix(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


@mistake(
    "attention_loops",
    en="The sum runs over the queries i. It must run over the keys j: O_i = Σ_j α_ij v_j, one output row per query.",
    zh="求和指标用成了查询 i。应对键 j 求和：O_i = Σ_j α_ij v_j，每个查询对应一行输出。",
)
def sums_over_the_queries(q, k, v):
    alpha = torch.softmax(_matrix(q, k), -1)
    return torch.stack([sum(alpha[i, j] * v[j] for i in range(len(q))) for j in range(len(k))])


@mistake(
    "attention_loops",
    en="The scores are not divided by √d_k.",
    zh="分数没有除以 √d_k。",
)
def leaves_the_scores_unscaled(q, k, v):
    return right.attention_loops(q * q.shape[-1] ** 0.5, k, v)


@mistake(
    "attention_loops",
    en="The scores are divided by d_k. Divide by its square root.",
    zh="分数除以了 d_k，应除以 √d_k。",
)
def divides_by_the_width(q, k, v):
    return right.attention_loops(q / q.shape[-1] ** 0.5, k, v)


@mistake(
    "attention_loops",
    en="The width in √d_k was read from v. It is the width of the queries and keys.",
    zh="√d_k 里的宽度取自 v。它应是查询和键的宽度。",
)
def takes_the_width_of_the_values(q, k, v):
    return right.attention_loops(q * (q.shape[-1] / v.shape[-1]) ** 0.5, k, v)


@mistake(
    "attention_loops",
    en="The exponentials are never divided by their sum: the weights of a query must add up to 1.",
    zh="指数没有除以它们的和：同一个查询的权重之和应为 1。",
)
def forgets_to_normalise(q, k, v):
    return _matrix(q, k).exp() @ v


@mistake(
    "attention_loops",
    en="The exponentials are divided by the number of keys. Divide by the sum of the exponentials.",
    zh="指数除以了键的个数，应除以指数之和。",
)
def divides_by_the_number_of_keys(q, k, v):
    return _matrix(q, k).exp() @ v / len(k)


@mistake(
    "attention_loops",
    en="The scores themselves are used as weights. They must go through a softmax first.",
    zh="直接把分数当成了权重。分数要先经过 softmax。",
)
def mixes_by_raw_scores(q, k, v):
    return _matrix(q, k) @ v


@mistake(
    "attention_loops",
    en="The scores are divided by their sum without the exponential: weights can then be negative or huge.",
    zh="分数没有取指数就除以了总和：这样的权重可能为负，也可能极大。",
)
def normalises_without_the_exponential(q, k, v):
    scores = _matrix(q, k)
    return scores / scores.sum(-1, keepdim=True) @ v


@mistake(
    "attention_loops",
    en="The weights are normalised over the queries. For each query, the weights over the keys must add up to 1.",
    zh="权重在查询上做了归一化。应让每个查询在所有键上的权重之和为 1。",
)
def normalises_over_the_queries(q, k, v):
    return torch.softmax(_matrix(q, k), 0) @ v


@mistake(
    "attention_loops",
    en="The keys are mixed instead of the values: keys decide the weights, values are what is mixed.",
    zh="混合的是键，不是值：键只决定权重，被混合的是值。",
)
def mixes_keys_instead_of_values(q, k, v):
    return right.attention_loops(q, k, k)


@mistake(
    "attention_loops",
    en="The best key takes everything. Attention mixes all values, each by its weight.",
    zh="最匹配的键独占了一切。注意力要按权重混合所有的值。",
)
def picks_the_best_key(q, k, v):
    return v[_matrix(q, k).argmax(-1)]


@mistake(
    "attention_loops",
    en="The last key is left out: j runs from 0 to Lk − 1, which is `range(len(k))`.",
    zh="漏掉了最后一个键：j 从 0 到 Lk − 1，即 `range(len(k))`。",
)
def stops_before_the_last_key(q, k, v):
    return right.attention_loops(q, k[:-1], v[:-1])


@mistake(
    "attention_loops",
    en="The first key is left out: indices start at 0.",
    zh="漏掉了第一个键：下标从 0 开始。",
)
def starts_at_the_second_key(q, k, v):
    return right.attention_loops(q, k[1:], v[1:])


@mistake(
    "attention_loops",
    en="The inner loop counts as many keys as there are queries. Lk need not equal Lq.",
    zh="内层循环按查询的个数去数键。Lk 不一定等于 Lq。",
)
def counts_the_keys_by_the_queries(q, k, v):
    seen = [k[j] for j in range(len(q))]
    return right.attention_loops(q, torch.stack(seen), v[: len(seen)])


@mistake(
    "attention_loops",
    en="Each term overwrites the one before (`=` instead of `+=`): only the last value is left.",
    zh="每一项都覆盖了前一项（该写 `+=` 却写成 `=`）：最后只剩下最末一个值。",
)
def overwrites_instead_of_adding(q, k, v):
    return torch.softmax(_matrix(q, k), -1)[:, -1:] * v[-1]


@mistake(
    "attention_loops",
    en="The running sum is not set back to 0 for the next query: each row contains all rows before it.",
    zh="换到下一个查询时，累加的结果没有清零：每一行都含有前面各行之和。",
)
def carries_the_sum_to_the_next_query(q, k, v):
    return right.attention_loops(q, k, v).cumsum(0)


@mistake(
    "attention_loops",
    en="The denominator is not set back to 0 for the next query: it keeps the exponentials of the queries before.",
    zh="换到下一个查询时，分母没有清零：里面还留着前面各查询的指数。",
)
def carries_the_denominator_to_the_next_query(q, k, v):
    powers = _matrix(q, k).exp()
    return powers / powers.sum(-1, keepdim=True).cumsum(0) @ v


@mistake(
    "attention_loops",
    en="The result is always float32, because `torch.zeros` was given no dtype. Use the dtype of the inputs, e.g. `q.new_zeros(...)`.",
    zh="结果总是 float32，因为 `torch.zeros` 没有指定 dtype。请沿用输入的 dtype，例如 `q.new_zeros(...)`。",
)
def forgets_the_dtype(q, k, v):
    return right.attention_loops(q, k, v).to(torch.float32)


@mistake(
    "attention_loops",
    en="The scores went through float32: `torch.tensor` makes float32 out of Python numbers. Give it `dtype=q.dtype`, or use `torch.stack`.",
    zh="分数经过了 float32：`torch.tensor` 会把 Python 的数变成 float32。请给它 `dtype=q.dtype`，或改用 `torch.stack`。",
)
def makes_the_scores_float32(q, k, v):
    scores = (q @ k.T).to(torch.float32) / q.shape[-1] ** 0.5
    return torch.softmax(scores, -1).to(v.dtype) @ v


# scaled_dot_product_attention


def _factor(q, scale):
    return q.shape[-1] ** -0.5 if scale is None else scale


def _scores(q, k, scale):
    return q @ k.transpose(-2, -1) * _factor(q, scale)


def _hidden(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, -torch.inf)


def _attend(weights, v):
    return weights @ v, weights


def _zeroed(weights, mask):
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


@mistake(
    "scaled_dot_product_attention",
    en="The scores are not divided by √d_k when no `scale` is given.",
    zh="没有给 `scale` 时，分数没有除以 √d_k。",
)
def forgets_the_scale(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, mask, 1.0 if scale is None else scale)


@mistake(
    "scaled_dot_product_attention",
    en="The scores are divided by d_k. Divide by its square root.",
    zh="分数除以了 d_k，应除以 √d_k。",
)
def divides_by_d_k(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, mask, 1 / q.shape[-1] if scale is None else scale)


@mistake(
    "scaled_dot_product_attention",
    en="The scores are multiplied by √d_k. Divide by it.",
    zh="分数乘以了 √d_k，应当除以它。",
)
def multiplies_by_sqrt_d_k(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, mask, q.shape[-1] ** 0.5 if scale is None else scale)


@mistake(
    "scaled_dot_product_attention",
    en="The scores are divided by the square root of the number of keys. √d_k is the width of a key: `q.shape[-1]`.",
    zh="分数除以了键的个数的平方根。√d_k 中的 d_k 是键的宽度，即 `q.shape[-1]`。",
)
def scales_by_the_sequence_length(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, mask, k.shape[-2] ** -0.5 if scale is None else scale)


@mistake(
    "scaled_dot_product_attention",
    en="The weights are scaled after the softmax. Scale the scores, before the softmax: then each row sums to 1.",
    zh="在 softmax 之后才缩放权重。应在 softmax 之前缩放分数，这样每一行的和才是 1。",
)
def scales_after_the_softmax(q, k, v, mask=None, scale=None):
    weights = right.scaled_dot_product_attention(q, k, v, mask, 1.0)[1]
    return _attend(weights * _factor(q, scale), v)


@mistake(
    "scaled_dot_product_attention",
    en="`scale` is ignored: the scores are always divided by √d_k.",
    zh="忽略了 `scale`：分数总是除以 √d_k。",
)
def ignores_the_scale_argument(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, mask)


@mistake(
    "scaled_dot_product_attention",
    en="`scale=0.0` is treated as not given, because 0.0 is false in `scale or …`. Ask `scale is None`.",
    zh="`scale=0.0` 被当成了「没有给」，因为在 `scale or …` 里 0.0 为假。应判断 `scale is None`。",
)
def takes_scale_zero_as_not_given(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, mask, scale or None)


@mistake(
    "scaled_dot_product_attention",
    en="The scores are divided by `scale`. It is a factor: multiply by it.",
    zh="分数除以了 `scale`。它是一个因子，应当相乘。",
)
def divides_by_the_scale_argument(q, k, v, mask=None, scale=None):
    scores = q @ k.transpose(-2, -1) / (q.shape[-1] ** 0.5 if scale is None else scale)
    return _attend(_zeroed(torch.softmax(_hidden(scores, mask), -1), mask), v)


@mistake(
    "scaled_dot_product_attention",
    en="A given `scale` is applied on top of 1/√d_k. It replaces 1/√d_k.",
    zh="给定的 `scale` 叠加在了 1/√d_k 之上。它应当取代 1/√d_k。",
)
def applies_both_scales(q, k, v, mask=None, scale=None):
    both = q.shape[-1] ** -0.5 * (1.0 if scale is None else scale)
    return right.scaled_dot_product_attention(q, k, v, mask, both)


@mistake(
    "scaled_dot_product_attention",
    en="The softmax runs over the queries (dim −2). Use dim −1, the keys: each row of the weights must sum to 1.",
    zh="softmax 沿查询轴（dim −2）做了。应沿键轴 dim −1：权重的每一行之和应为 1。",
)
def normalises_over_the_query_axis(q, k, v, mask=None, scale=None):
    return _attend(_zeroed(torch.softmax(_hidden(_scores(q, k, scale), mask), -2), mask), v)


@mistake(
    "scaled_dot_product_attention",
    en="One softmax over the whole score matrix: all queries share one unit of weight. Each row must sum to 1.",
    zh="对整个分数矩阵做了一次 softmax：所有查询合起来才有总和 1。应当每一行的和都为 1。",
)
def normalises_over_the_whole_matrix(q, k, v, mask=None, scale=None):
    scores = _hidden(_scores(q, k, scale), mask)
    return _attend(torch.softmax(scores.flatten(-2), -1).view(scores.shape), v)


@mistake(
    "scaled_dot_product_attention",
    en="There is no softmax: the scores themselves are used as weights.",
    zh="没有做 softmax：直接把分数当成了权重。",
)
def skips_the_softmax(q, k, v, mask=None, scale=None):
    return _attend(_zeroed(_scores(q, k, scale), mask), v)


@mistake(
    "scaled_dot_product_attention",
    en="The exponentials are not divided by their sum: each row of the weights must sum to 1.",
    zh="指数没有除以它们的和：权重的每一行之和应为 1。",
)
def leaves_the_exponentials_unnormalised(q, k, v, mask=None, scale=None):
    return _attend(_hidden(_scores(q, k, scale), mask).exp(), v)


@mistake(
    "scaled_dot_product_attention",
    en="Large scores overflow: exp(1000) is inf, and inf / inf is NaN. Subtract the row's maximum first, or use torch.softmax.",
    zh="分数大时溢出：exp(1000) 是 inf，而 inf / inf 是 NaN。应先减去该行的最大值，或使用 torch.softmax。",
)
def overflows_on_large_scores(q, k, v, mask=None, scale=None):
    powers = _zeroed(_scores(q, k, scale).exp(), mask)
    total = powers.sum(-1, keepdim=True)
    return _attend(powers / total.masked_fill(total == 0, 1.0), v)


@mistake(
    "scaled_dot_product_attention",
    en="Large scores overflow, and `nan_to_num` turns the NaN into zeros: the query then gets no value at all. Subtract the row's maximum "
    "before the exponential, or use torch.softmax.",
    zh="分数大时溢出，`nan_to_num` 又把 NaN 变成了 0：这个查询就得不到任何值了。应在取指数之前减去该行的最大值，或使用 torch.softmax。",
)
def hides_the_overflow(q, k, v, mask=None, scale=None):
    powers = _scores(q, k, scale).exp()
    powers = powers if mask is None else powers * mask
    return _attend((powers / powers.sum(-1, keepdim=True)).nan_to_num(0.0), v)


@mistake(
    "scaled_dot_product_attention",
    en="The best key takes everything (argmax). Attention mixes all values, each by its weight.",
    zh="最匹配的键独占了一切（argmax）。注意力要按权重混合所有的值。",
)
def takes_only_the_best_key(q, k, v, mask=None, scale=None):
    scores = _hidden(_scores(q, k, scale), mask)
    best = torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)
    return _attend(_zeroed(best, mask), v)


@mistake(
    "scaled_dot_product_attention",
    en="The keys are mixed instead of the values: the last product is weights @ v.",
    zh="混合的是键，不是值：最后一步应是 weights @ v。",
)
def mixes_the_keys(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, k, mask, scale)


@mistake(
    "scaled_dot_product_attention",
    en="`k.T` turns all axes around when there are batch axes. Use `k.transpose(-2, -1)` (or `k.mT`): only the last two.",
    zh="有批次轴时，`k.T` 会把所有轴都倒过来。请用 `k.transpose(-2, -1)`（或 `k.mT`），只交换最后两个轴。",
)
def transposes_all_axes(q, k, v, mask=None, scale=None):
    turned = k.permute(*reversed(range(k.dim())))
    scores = _hidden(q @ turned * _factor(q, scale), mask)
    return _attend(torch.softmax(scores, -1).nan_to_num(0.0), v)


@mistake(
    "scaled_dot_product_attention",
    en="The mask is inverted: True was taken to mean drop. Here True means may look.",
    zh="掩码反了（把 True 当成了「丢弃」）。本课约定 True 表示「可以看」。",
)
def inverts_the_mask(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, None if mask is None else ~mask, scale)


@mistake(
    "scaled_dot_product_attention",
    en="The mask is ignored.",
    zh="没有使用掩码。",
)
def ignores_the_mask(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, None, scale)


@mistake(
    "scaled_dot_product_attention",
    en="Forbidden scores are set to 0. A score of 0 is an ordinary score, e⁰ = 1: use −inf.",
    zh="把禁止位置的分数设成了 0。0 只是普通分数，e⁰ = 1：要用 −inf。",
)
def sets_forbidden_scores_to_zero(q, k, v, mask=None, scale=None):
    return _attend(torch.softmax(_zeroed(_scores(q, k, scale), mask), -1), v)


@mistake(
    "scaled_dot_product_attention",
    en="Weights are set to 0 after the softmax: the row no longer sums to 1. Mask the scores before the softmax.",
    zh="在 softmax 之后才把权重置 0：这一行的和不再是 1。应在 softmax 之前遮住分数。",
)
def masks_after_the_softmax(q, k, v, mask=None, scale=None):
    return _attend(_zeroed(torch.softmax(_scores(q, k, scale), -1), mask), v)


@mistake(
    "scaled_dot_product_attention",
    en="Masked after the softmax, then renormalised: right on paper, but a large forbidden score leaves 0 / 0 for the others. "
    "Mask the scores before the softmax.",
    zh="在 softmax 之后才加掩码再重新归一化：纸面上正确，但禁止位置的分数很大时，其余位置只剩 0 / 0。应在 softmax 之前遮住分数。",
)
def renormalises_after_the_softmax(q, k, v, mask=None, scale=None):
    weights = _zeroed(torch.softmax(_scores(q, k, scale), -1), mask)
    total = weights.sum(-1, keepdim=True)
    return _attend(weights / total.masked_fill(total == 0, 1.0), v)


@mistake(
    "scaled_dot_product_attention",
    en="The mask itself is added to the scores, as 0 and 1. It must become 0 and −inf first.",
    zh="把掩码当作 0 和 1 直接加到了分数上。应先变成 0 和 −inf。",
)
def adds_the_mask_as_a_number(q, k, v, mask=None, scale=None):
    scores = _scores(q, k, scale)
    return _attend(torch.softmax(scores if mask is None else scores + mask, -1), v)


@mistake(
    "scaled_dot_product_attention",
    en="Forbidden scores get a small negative number such as −10: some of the weight still goes there. Use −inf.",
    zh="禁止位置的分数只设成 −10 之类的小负数：仍有一部分权重漏过去。要用 −inf。",
)
def fills_with_a_small_negative(q, k, v, mask=None, scale=None):
    scores = _scores(q, k, scale)
    if mask is None:
        return _attend(torch.softmax(scores, -1), v)
    weights = torch.softmax(scores.masked_fill(~mask, -10.0), -1)
    return _attend(weights * mask.any(-1, keepdim=True), v)


@mistake(
    "scaled_dot_product_attention",
    en="A query that may look nowhere averages all forbidden values: a row of −1e9 is as flat as a row of 0. Its weights must be 0.",
    zh="哪里都不许看的查询，把所有禁止的值平均了：整行 −1e9 和整行 0 一样平。它的权重应为 0。",
)
def averages_the_forbidden(q, k, v, mask=None, scale=None):
    scores = _scores(q, k, scale)
    return _attend(torch.softmax(scores if mask is None else scores.masked_fill(~mask, -1e9), -1), v)


@mistake(
    "scaled_dot_product_attention",
    en="A query that may look nowhere gives NaN: the softmax of a row of −inf is 0/0. Its weights must be 0.",
    zh="哪里都不许看的查询得到 NaN：整行 −inf 的 softmax 是 0/0。它的权重应为 0。",
)
def gives_nan_where_nothing_is_allowed(q, k, v, mask=None, scale=None):
    return _attend(torch.softmax(_hidden(_scores(q, k, scale), mask), -1), v)


@mistake(
    "scaled_dot_product_attention",
    en="Where a query may look nowhere the output is cleaned, but the gradient is NaN: the whole row was −inf, and −inf − (−inf) "
    "came before the cleaning. Give such a row finite scores.",
    zh="哪里都不许看的查询，输出清理干净了，梯度却是 NaN：整行都是 −inf，清理之前先算了 −inf − (−inf)。这样的行应保留有限的分数。",
)
def leaves_nan_in_the_gradient(q, k, v, mask=None, scale=None):
    scores = _scores(q, k, scale)
    if mask is not None:
        scores = scores + q.new_zeros(mask.shape).masked_fill(~mask, -torch.inf)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return _attend((powers / powers.sum(-1, keepdim=True)).nan_to_num(0.0), v)


@mistake(
    "scaled_dot_product_attention",
    en="The mask is transposed: its rows are queries, its columns are keys.",
    zh="掩码转置了：它的行是查询，列是键。",
)
def transposes_the_mask(q, k, v, mask=None, scale=None):
    turned = None if mask is None else mask.transpose(-2, -1)
    return right.scaled_dot_product_attention(q, k, v, turned, scale)


@mistake(
    "scaled_dot_product_attention",
    en="Only the output is returned. Return the pair (out, weights).",
    zh="只返回了输出。应返回一对值 (out, weights)。",
)
def returns_only_the_output(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, mask, scale)[0]


@mistake(
    "scaled_dot_product_attention",
    en="The pair is in the wrong order: first the output, then the weights.",
    zh="两个返回值的顺序反了：先是输出，后是权重。",
)
def returns_the_weights_first(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, mask, scale)[::-1]


@mistake(
    "scaled_dot_product_attention",
    en="The scores are returned in place of the weights. The weights are what comes out of the softmax.",
    zh="返回的是分数，不是权重。权重是 softmax 之后的结果。",
)
def returns_the_scores(q, k, v, mask=None, scale=None):
    return right.scaled_dot_product_attention(q, k, v, mask, scale)[0], _scores(q, k, scale)


@mistake(
    "scaled_dot_product_attention",
    en="No gradient flows through the weights: q and k could never learn. Do not use `detach`, `.data` or `no_grad` here.",
    zh="梯度没有穿过权重：q 和 k 永远学不到东西。这里不要用 `detach`、`.data` 或 `no_grad`。",
)
def cuts_the_gradient_at_the_weights(q, k, v, mask=None, scale=None):
    return _attend(right.scaled_dot_product_attention(q, k, v, mask, scale)[1].detach(), v)


@mistake(
    "scaled_dot_product_attention",
    en="The softmax is done in float32: float64 inputs lose half their digits. Keep the dtype of the inputs, or go up, never down.",
    zh="softmax 用 float32 做了：float64 的输入丢掉了一半有效位。应沿用输入的 dtype，可以升高，不可降低。",
)
def narrows_to_float32(q, k, v, mask=None, scale=None):
    scores = _scores(q, k, scale)
    if mask is not None:
        scores = scores.masked_fill(~mask & mask.any(-1, keepdim=True), -torch.inf)
    return _attend(_zeroed(torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype), mask), v)


@mistake(
    "scaled_dot_product_attention",
    en="The query is scaled in place (`q *= …`), so the caller's tensor changes. Make a new tensor: `q * …`.",
    zh="原地缩放了查询（`q *= …`），改动了调用者的张量。应生成新的张量：`q * …`。",
)
def scales_the_query_in_place(q, k, v, mask=None, scale=None):
    q *= _factor(q, scale)
    return right.scaled_dot_product_attention(q, k, v, mask, 1.0)


# attention_backward


def _finish(q, k, weights, dout, dscores):
    """dq, dk and dv from the gradient of the scaled scores."""
    dscores = dscores / q.shape[-1] ** 0.5
    return dscores @ k, dscores.transpose(-2, -1) @ q, _dv(weights, dout)


def _dv(weights, dout):
    return weights.transpose(-2, -1) @ dout


def _dweights(v, dout):
    return dout @ v.transpose(-2, -1)


@mistake(
    "attention_backward",
    en="The inner product is missing: dscores = weights · (dweights − Σ weights · dweights). Without the sum the "
    "normalisation of the softmax is forgotten.",
    zh="少了内积项：dscores = weights · (dweights − Σ weights · dweights)。没有这个和，就忘了 softmax 的归一化。",
)
def forgets_the_inner_product(q, k, v, weights, dout):
    return _finish(q, k, weights, dout, weights * _dweights(v, dout))


@mistake(
    "attention_backward",
    en="Only the diagonal of the softmax's Jacobian is used, w(1 − w): one score also changes the other weights of its row.",
    zh="只用了 softmax 雅可比矩阵的对角线 w(1 − w)：一个分数还会改变同一行的其他权重。",
)
def uses_only_the_diagonal(q, k, v, weights, dout):
    return _finish(q, k, weights, dout, weights * (1 - weights) * _dweights(v, dout))


@mistake(
    "attention_backward",
    en="The softmax is passed over: the gradient of the weights is used as the gradient of the scores.",
    zh="跳过了 softmax：把权重的梯度直接当成了分数的梯度。",
)
def passes_over_the_softmax(q, k, v, weights, dout):
    return _finish(q, k, weights, dout, _dweights(v, dout))


@mistake(
    "attention_backward",
    en="The inner product is summed over the queries (dim −2). Each row has its own softmax: sum over the keys, dim −1.",
    zh="内积沿查询轴（dim −2）求和了。每一行各有自己的 softmax：应沿键轴 dim −1 求和。",
)
def sums_the_inner_product_over_the_queries(q, k, v, weights, dout):
    dweights = _dweights(v, dout)
    inner = (weights * dweights).sum(-2, keepdim=True)
    return _finish(q, k, weights, dout, weights * (dweights - inner))


@mistake(
    "attention_backward",
    en="The inner product has lost its axis: without `keepdim=True` it is subtracted along the wrong axis, or does not fit at all.",
    zh="内积少了一个轴：没有 `keepdim=True`，就会沿错误的轴相减，或者根本对不上形状。",
)
def forgets_to_keep_the_axis(q, k, v, weights, dout):
    dweights = _dweights(v, dout)
    return _finish(q, k, weights, dout, weights * (dweights - (weights * dweights).sum(-1)))


@mistake(
    "attention_backward",
    en="The sum that is subtracted is not weighted: it must be Σ weights · dweights, not Σ dweights.",
    zh="减去的和没有加权：应为 Σ weights · dweights，而不是 Σ dweights。",
)
def subtracts_an_unweighted_sum(q, k, v, weights, dout):
    dweights = _dweights(v, dout)
    return _finish(q, k, weights, dout, weights * (dweights - dweights.sum(-1, keepdim=True)))


@mistake(
    "attention_backward",
    en="The sign of dq and dk is wrong: it is dweights minus the inner product, not the other way round.",
    zh="dq 和 dk 的符号反了：应是 dweights 减去内积，而不是内积减去 dweights。",
)
def turns_the_sign_around(q, k, v, weights, dout):
    dq, dk, dv = right.attention_backward(q, k, v, weights, dout)
    return -dq, -dk, dv


@mistake(
    "attention_backward",
    en="The scale 1/√d_k is missing in dq and dk. It belongs to the scores, so it belongs to their gradient.",
    zh="dq 和 dk 里少了缩放 1/√d_k。分数里有它，分数的梯度里也要有。",
)
def forgets_the_scale_on_the_way_back(q, k, v, weights, dout):
    dq, dk, dv = right.attention_backward(q, k, v, weights, dout)
    return dq * q.shape[-1] ** 0.5, dk * q.shape[-1] ** 0.5, dv


@mistake(
    "attention_backward",
    en="The scale 1/√d_k is applied twice: dq and dk are divided by d_k.",
    zh="缩放 1/√d_k 用了两次：dq 和 dk 除以了 d_k。",
)
def scales_twice(q, k, v, weights, dout):
    dq, dk, dv = right.attention_backward(q, k, v, weights, dout)
    return dq / q.shape[-1] ** 0.5, dk / q.shape[-1] ** 0.5, dv


@mistake(
    "attention_backward",
    en="dk is not scaled: both dq and dk carry 1/√d_k.",
    zh="dk 没有缩放：dq 和 dk 都要带上 1/√d_k。",
)
def scales_only_dq(q, k, v, weights, dout):
    dq, dk, dv = right.attention_backward(q, k, v, weights, dout)
    return dq, dk * q.shape[-1] ** 0.5, dv


@mistake(
    "attention_backward",
    en="dv is scaled too. The scale acts on the scores, and the path to v does not pass through them.",
    zh="dv 也被缩放了。缩放作用在分数上，而通向 v 的路不经过分数。",
)
def scales_dv_too(q, k, v, weights, dout):
    dq, dk, dv = right.attention_backward(q, k, v, weights, dout)
    return dq, dk, dv / q.shape[-1] ** 0.5


@mistake(
    "attention_backward",
    en="The width in √d_k was read from v or dout. It is the width of the queries and keys.",
    zh="√d_k 里的宽度取自 v 或 dout。它应是查询和键的宽度。",
)
def scales_by_the_width_of_the_values(q, k, v, weights, dout):
    dq, dk, dv = right.attention_backward(q, k, v, weights, dout)
    ratio = (q.shape[-1] / v.shape[-1]) ** 0.5
    return dq * ratio, dk * ratio, dv


@mistake(
    "attention_backward",
    en="dq and dk are exchanged: the order is dq, dk, dv, each with the shape of its own input.",
    zh="dq 和 dk 交换了：顺序是 dq、dk、dv，各自的形状与对应的输入相同。",
)
def exchanges_dq_and_dk(q, k, v, weights, dout):
    dq, dk, dv = right.attention_backward(q, k, v, weights, dout)
    return dk, dq, dv


@mistake(
    "attention_backward",
    en="dq is made from q and dk from k. It is crosswise: the score is q·k, so dq needs k and dk needs q.",
    zh="用 q 算 dq、用 k 算 dk。应当交叉：分数是 q·k，所以 dq 要用 k，dk 要用 q。",
)
def multiplies_each_by_itself(q, k, v, weights, dout):
    dweights = _dweights(v, dout)
    dscores = weights * (dweights - (weights * dweights).sum(-1, keepdim=True)) / q.shape[-1] ** 0.5
    return dscores @ q, dscores.transpose(-2, -1) @ k, _dv(weights, dout)


@mistake(
    "attention_backward",
    en="The weights are not transposed in dv: dv_j = Σ_i weights_ij dout_i sums over the queries.",
    zh="算 dv 时权重没有转置：dv_j = Σ_i weights_ij dout_i，是对查询求和。",
)
def forgets_to_transpose_in_dv(q, k, v, weights, dout):
    dq, dk, _ = right.attention_backward(q, k, v, weights, dout)
    return dq, dk, weights @ dout


@mistake(
    "attention_backward",
    en="The gradient of the scores is not transposed in dk: dk_j = Σ_i dscores_ij q_i sums over the queries.",
    zh="算 dk 时分数的梯度没有转置：dk_j = Σ_i dscores_ij q_i，是对查询求和。",
)
def forgets_to_transpose_in_dk(q, k, v, weights, dout):
    dweights = _dweights(v, dout)
    dscores = weights * (dweights - (weights * dweights).sum(-1, keepdim=True)) / q.shape[-1] ** 0.5
    return dscores @ k, dscores @ q, _dv(weights, dout)


@mistake(
    "attention_backward",
    en="`.T` turns all axes around when there are batch axes. Use `.transpose(-2, -1)` (or `.mT`): only the last two.",
    zh="有批次轴时，`.T` 会把所有轴都倒过来。请用 `.transpose(-2, -1)`（或 `.mT`），只交换最后两个轴。",
)
def turns_all_axes_around(q, k, v, weights, dout):
    dv = weights.permute(*reversed(range(weights.dim()))) @ dout
    return *right.attention_backward(q, k, v, weights, dout)[:2], dv


@mistake(
    "attention_backward",
    en="The weights are computed again from q and k. A mask may have shaped the forward pass: use the `weights` you are given.",
    zh="权重是用 q 和 k 重新算的。前向时可能用过掩码：请用给你的 `weights`。",
)
def computes_the_weights_again(q, k, v, weights, dout):
    return right.attention_backward(q, k, v, torch.softmax(_matrix(q, k), -1), dout)


@mistake(
    "attention_backward",
    en="The given `weights` are changed in place. Make a new tensor.",
    zh="原地改动了传入的 `weights`。应生成新的张量。",
)
def works_in_the_given_weights(q, k, v, weights, dout):
    found = right.attention_backward(q, k, v, weights, dout)
    weights *= _dweights(v, dout)
    return found
