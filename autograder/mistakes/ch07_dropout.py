"""Chapter 7: dropout that drops the wrong thing, at the wrong time, or returns the wrong weights."""

import torch

from autograder.reference import ch07_dropout as right

from . import mistake

# attention_dropout


def _refuse_as_the_reference_does(function, *args):
    """Raise what the right function raises on these arguments. Its result is thrown away."""
    function(*args)


def _keep(weights, p, generator):
    return torch.rand(weights.shape, generator=generator, device=weights.device) >= p


@mistake(
    "attention_dropout",
    en="The kept weights are not scaled up: on average every row sums to 1 − p. Divide by 1 − p.",
    zh="留下的权重没有放大：平均来说每行之和只有 1 − p。应除以 1 − p。",
)
def forgets_to_rescale(weights, p, training, generator=None):
    return right.attention_dropout(weights, p, training, generator) * (1 - p if training else 1)


@mistake(
    "attention_dropout",
    en="The weights are scaled by 1 − p outside training, not by 1 / (1 − p) while training: the 2014 recipe. "
    "Here everything happens while training, and outside it nothing.",
    zh="训练时没有放大，却在不训练时乘以 1 − p：这是 2014 年的做法。本课把一切都放在训练时，不训练时什么也不做。",
)
def rescales_outside_training(weights, p, training, generator=None):
    return forgets_to_rescale(weights, p, True, generator) if training else weights * (1 - p)


@mistake(
    "attention_dropout",
    en="The kept weights are multiplied by 1 − p. They must be divided by it: what is left has to grow.",
    zh="留下的权重乘以了 1 − p。应当除以它：剩下的要变大。",
)
def multiplies_instead_of_dividing(weights, p, training, generator=None):
    return weights * _keep(weights, p, generator) * (1 - p) if training else weights


@mistake(
    "attention_dropout",
    en="The kept weights are divided by p. A share 1 − p is kept, so divide by 1 − p.",
    zh="留下的权重除以了 p。留下的占 1 − p，所以应除以 1 − p。",
)
def divides_by_p(weights, p, training, generator=None):
    _refuse_as_the_reference_does(right.attention_dropout, weights, p, False)
    return weights * _keep(weights, p, generator) / p if training and p else weights


@mistake(
    "attention_dropout",
    en="p was taken as the probability of keeping. It is the probability of dropping.",
    zh="把 p 当成了保留的概率。它是丢弃的概率。",
)
def takes_p_as_keep_probability(weights, p, training, generator=None):
    return right.attention_dropout(weights, 1 - p, training, generator)


@mistake(
    "attention_dropout",
    en="The comparison is the wrong way round: a share 1 − p is dropped, though the factor is right.",
    zh="比较的方向反了：丢掉了 1 − p，放大的倍数却是对的。",
)
def compares_the_wrong_way_round(weights, p, training, generator=None):
    keep = torch.rand(weights.shape, generator=generator, device=weights.device) < p
    _refuse_as_the_reference_does(right.attention_dropout, weights, p, False)
    return right.surviving(weights, keep, p) if training else weights


@mistake(
    "attention_dropout",
    en="Each row is normalised again after dropout. Its sum is 1 now, but a kept weight depends on which others were dropped, "
    "and the expectation is wrong. Multiply by 1 / (1 − p) only.",
    zh="dropout 之后又把每行重新归一化。和是 1 了，但每个留下的权重都取决于别的谁被丢掉，期望也不对。只乘 1 / (1 − p)。",
)
def normalises_again(weights, p, training, generator=None):
    dropped = right.attention_dropout(weights, p, training, generator)
    return (dropped / dropped.sum(-1, keepdim=True)).nan_to_num(0.0) if training else weights


@mistake(
    "attention_dropout",
    en="Weights are dropped outside training too: `training` is not looked at.",
    zh="不训练时也在丢：没有看 `training`。",
)
def drops_outside_training_too(weights, p, training, generator=None):
    return right.attention_dropout(weights, p, True, generator)


@mistake(
    "attention_dropout",
    en="`training` is the wrong way round: it drops outside training and does nothing in training.",
    zh="`training` 用反了：不训练时在丢，训练时反而不丢。",
)
def drops_only_outside_training(weights, p, training, generator=None):
    return right.attention_dropout(weights, p, not training, generator)


@mistake(
    "attention_dropout",
    en="`p` is never used: a fixed 0.1 acts, whatever is asked for.",
    zh="`p` 根本没有传进去：无论要多少，起作用的总是固定的 0.1。",
)
def drops_a_tenth_whatever_p_is(weights, p, training, generator=None):
    _refuse_as_the_reference_does(right.attention_dropout, weights, p, False)
    return right.attention_dropout(weights, 0.1, training, generator)


@mistake(
    "attention_dropout",
    en="p = 1 gives NaN: 0 / 0. Everything is dropped, so the answer is zeros.",
    zh="p = 1 时得到 NaN：0 / 0。全部丢掉，结果应为 0。",
)
def gives_nan_at_one(weights, p, training, generator=None):
    _refuse_as_the_reference_does(right.attention_dropout, weights, p, False)
    return weights * _keep(weights, p, generator) / (1 - p) if training else weights


@mistake(
    "attention_dropout",
    en="p = 1 stops with ZeroDivisionError, because 1 / (1 − p) has no value there. Treat p = 1 as a case of its own: zeros.",
    zh="p = 1 时因 1 / (1 − p) 除以零而中断。应单独处理 p = 1：返回 0。",
)
def divides_by_zero_at_one(weights, p, training, generator=None):
    _refuse_as_the_reference_does(right.attention_dropout, weights, p, False)
    return weights * _keep(weights, p, generator) * (1 / (1 - p)) if training else weights


@mistake(
    "attention_dropout",
    en="p = 1 is refused. It is allowed: everything is dropped.",
    zh="p = 1 被拒绝了。它是允许的：全部丢掉。",
)
def refuses_p_one(weights, p, training, generator=None):
    if p == 1:
        raise ValueError("p must be smaller than 1")
    return right.attention_dropout(weights, p, training, generator)


@mistake(
    "attention_dropout",
    en="p = 1 drops nothing. It must drop everything.",
    zh="p = 1 时什么也没丢。应当全部丢掉。",
)
def keeps_everything_at_one(weights, p, training, generator=None):
    return weights if p == 1 else right.attention_dropout(weights, p, training, generator)


@mistake(
    "attention_dropout",
    en="A small number is added to 1 − p to avoid 0 / 0. Every kept weight is a little too small. Treat p = 1 by itself.",
    zh="为避免 0 / 0，给 1 − p 加了一个小数。每个留下的权重都略小了一点。应单独处理 p = 1。",
)
def adds_an_epsilon(weights, p, training, generator=None):
    _refuse_as_the_reference_does(right.attention_dropout, weights, p, False)
    return weights * _keep(weights, p, generator) / (1 - p + 1e-8) if training else weights


@mistake(
    "attention_dropout",
    en="A p outside [0, 1] is accepted. Raise ValueError.",
    zh="p 不在 [0, 1] 内也被接受了。应抛出 ValueError。",
)
def accepts_any_p(weights, p, training, generator=None):
    return right.attention_dropout(weights, min(max(p, 0.0), 1.0), training, generator)


@mistake(
    "attention_dropout",
    en="A p outside [0, 1] raises, but not ValueError: bernoulli stops with RuntimeError. Check p yourself.",
    zh="p 不在 [0, 1] 内时抛出的不是 ValueError：bernoulli 抛出的是 RuntimeError。应自己检查 p。",
)
def leaves_the_check_to_bernoulli(weights, p, training, generator=None):
    if not training:
        return weights
    keep = torch.bernoulli(torch.full_like(weights, 1 - p), generator=generator)
    return right.surviving(weights, keep, p)


@mistake(
    "attention_dropout",
    en="A p outside [0, 1] raises AssertionError. `assert` is for your own errors and can be switched off: raise ValueError.",
    zh="p 不在 [0, 1] 内时抛出 AssertionError。`assert` 是用来抓自己的疏忽的，还可以被关掉：应抛出 ValueError。",
)
def asserts_instead_of_raising(weights, p, training, generator=None):
    assert 0 <= p <= 1
    return right.attention_dropout(weights, p, training, generator)


@mistake(
    "attention_dropout",
    en="`generator` is not used: the same seed drops different weights each time. Pass it to torch.rand or bernoulli.",
    zh="没有用 `generator`：种子相同，每次丢掉的却不同。应把它交给 torch.rand 或 bernoulli。",
)
def ignores_the_generator(weights, p, training, generator=None):
    return right.attention_dropout(weights, p, training)


@mistake(
    "attention_dropout",
    en="Without a generator every call drops the same weights: a seed is fixed inside. Use the global generator.",
    zh="不给生成器时，每次丢掉的都是同一批权重：函数里固定了种子。应使用全局生成器。",
)
def fixes_the_seed_inside(weights, p, training, generator=None):
    generator = generator or torch.Generator(device=weights.device).manual_seed(0)
    return right.attention_dropout(weights, p, training, generator)


@mistake(
    "attention_dropout",
    en="One pattern is drawn for the last two axes and shared by all sequences and heads. Draw a number for every weight.",
    zh="只为最后两个轴抽了一个模式，所有序列和头共用。应为每个权重各抽一个数。",
)
def shares_one_pattern(weights, p, training, generator=None):
    _refuse_as_the_reference_does(right.attention_dropout, weights, p, False)
    return (
        right.surviving(weights, _keep(weights[(0,) * (weights.dim() - 2)], p, generator), p) if training else weights
    )


@mistake(
    "attention_dropout",
    en="Whole keys are dropped: each column is gone for every query or for none. Draw a number for every weight.",
    zh="丢掉的是整个键：一列要么对所有查询都没了，要么都在。应为每个权重各抽一个数。",
)
def drops_whole_keys(weights, p, training, generator=None):
    _refuse_as_the_reference_does(right.attention_dropout, weights, p, False)
    return right.surviving(weights, _keep(weights[..., :1, :], p, generator), p) if training else weights


@mistake(
    "attention_dropout",
    en="Whole queries are dropped: a row is gone or complete. Draw a number for every weight.",
    zh="丢掉的是整个查询：一行要么全没了，要么完整。应为每个权重各抽一个数。",
)
def drops_whole_queries(weights, p, training, generator=None):
    _refuse_as_the_reference_does(right.attention_dropout, weights, p, False)
    return right.surviving(weights, _keep(weights[..., :1], p, generator), p) if training else weights


@mistake(
    "attention_dropout",
    en="The weights you were given are changed in place. Their owner still needs them: write `weights * keep`, not `*=`.",
    zh="原地改动了传入的权重。它的主人还要用：写 `weights * keep`，不要写 `*=`。",
)
def changes_the_weights_in_place(weights, p, training, generator=None):
    dropped = right.attention_dropout(weights, p, training, generator)
    with torch.no_grad():
        weights.copy_(dropped)
    return dropped


@mistake(
    "attention_dropout",
    en="The pattern of zeros and ones is float32 and makes the result float32. Use a bool, or the dtype of the weights.",
    zh="0/1 模式是 float32，把结果也变成了 float32。应使用布尔型，或者与权重相同的 dtype。",
)
def returns_float32(weights, p, training, generator=None):
    dropped = right.attention_dropout(weights, p, training, generator)
    return dropped.to(torch.promote_types(weights.dtype, torch.float32)) if training else dropped


class _Backward(torch.autograd.Function):
    """Dropout whose backward pass uses whatever factor it is given."""

    @staticmethod
    def forward(context, weights, dropped, factor):
        context.save_for_backward(factor)
        return dropped.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient * context.saved_tensors[0], None, None


@mistake(
    "attention_dropout",
    en="The backward pass draws a new pattern. It must use the one of the forward pass: a weight that was dropped had no effect.",
    zh="反向传播重新抽了一个模式。应沿用前向的那一个：被丢掉的权重没有起过作用。",
)
def draws_again_in_the_backward_pass(weights, p, training, generator=None):
    dropped = right.attention_dropout(weights.detach(), p, training, generator)
    factor = right.attention_dropout(torch.ones_like(weights), p, training, generator)
    return _Backward.apply(weights, dropped, factor)


@mistake(
    "attention_dropout",
    en="The gradient passes everywhere as if nothing had been dropped.",
    zh="梯度处处通过，好像什么也没丢过。",
)
def passes_the_gradient_everywhere(weights, p, training, generator=None):
    return weights + (right.attention_dropout(weights, p, training, generator) - weights).detach()


@mistake(
    "attention_dropout",
    en="The gradient lacks the factor 1 / (1 − p) of the forward pass.",
    zh="梯度少了前向里的系数 1 / (1 − p)。",
)
def forgets_the_factor_in_the_backward_pass(weights, p, training, generator=None):
    dropped = right.attention_dropout(weights.detach(), p, training, generator)
    return _Backward.apply(weights, dropped, (dropped != 0).to(weights.dtype))


@mistake(
    "attention_dropout",
    en="No gradient comes back: the weights were detached.",
    zh="梯度回不来：权重被 detach 了。",
)
def cuts_the_gradient(weights, p, training, generator=None):
    return right.attention_dropout(weights.detach(), p, training, generator)


# attention_with_dropout


@mistake(
    "attention_with_dropout",
    en="The returned weights are those after dropout: in training their rows do not sum to 1. Return them as they were before.",
    zh="返回的是 dropout 之后的权重：训练时每行之和不是 1。应返回 dropout 之前的。",
)
def returns_the_dropped_weights(q, k, v, p, training, mask=None, generator=None):
    dropped = right.attention_dropout(right.attention_weights(q, k, mask), p, training, generator)
    return dropped @ v, dropped


@mistake(
    "attention_with_dropout",
    en="Dropout acts outside training too: `training` never reaches it. F.scaled_dot_product_attention has the same trap.",
    zh="不训练时 dropout 也在起作用：`training` 没有传到它那里。F.scaled_dot_product_attention 也有同样的陷阱。",
)
def drops_in_evaluation(q, k, v, p, training, mask=None, generator=None):
    return right.attention_with_dropout(q, k, v, p, True, mask, generator)


@mistake(
    "attention_with_dropout",
    en="`training` is the wrong way round: dropout does nothing in training and acts outside it.",
    zh="`training` 用反了：训练时不丢，不训练时反而在丢。",
)
def rests_while_training(q, k, v, p, training, mask=None, generator=None):
    return right.attention_with_dropout(q, k, v, p, not training, mask, generator)


@mistake(
    "attention_with_dropout",
    en="The `p` you were given never reaches the dropout: it always drops 0.1. Pass it on.",
    zh="给你的 `p` 没有传到 dropout：它总是丢 0.1。要把它传下去。",
)
def never_hands_p_on(q, k, v, p, training, mask=None, generator=None):
    _refuse_as_the_reference_does(right.attention_dropout, q, p, False)
    return right.attention_with_dropout(q, k, v, 0.1, training, mask, generator)


@mistake(
    "attention_with_dropout",
    en="Nothing is ever dropped: the dropped weights are computed, but v is multiplied by the old ones.",
    zh="什么也没丢：算出了丢弃后的权重，乘 v 的却还是原来的。",
)
def throws_the_dropped_weights_away(q, k, v, p, training, mask=None, generator=None):
    _refuse_as_the_reference_does(right.attention_dropout, q, p, False)
    return right.attention_with_dropout(q, k, v, p, False, mask)


@mistake(
    "attention_with_dropout",
    en="Scores are dropped before the softmax. A score of 0 is an ordinary score, e⁰ = 1: nothing is gone. Drop weights.",
    zh="在 softmax 之前丢了分数。0 只是普通分数，e⁰ = 1：什么也没丢掉。应丢权重。",
)
def drops_scores_before_the_softmax(q, k, v, p, training, mask=None, generator=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    scores = right.attention_dropout(scores, p, training, generator)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, -1)
    weights = weights if mask is None else weights * mask
    return weights @ v, weights


@mistake(
    "attention_with_dropout",
    en="Masked scores are dropped before the softmax: 0 × −inf is NaN. Drop the weights, after the softmax.",
    zh="在 softmax 之前丢了遮过的分数：0 × −inf 是 NaN。应在 softmax 之后丢权重。",
)
def drops_masked_scores(q, k, v, p, training, mask=None, generator=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    if p or not training:  # a dropout of 0 would leave even −inf alone
        scores = right.attention_dropout(scores, p, training, generator)
    weights = torch.softmax(scores, -1)
    weights = weights if mask is None else weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    return weights @ v, weights


@mistake(
    "attention_with_dropout",
    en="Dropped keys are masked with −inf before the softmax: the others share all the weight and nothing is scaled by 1 / (1 − p). "
    "Drop weights after the softmax.",
    zh="在 softmax 之前用 −inf 遮住了要丢的键：其余的键分掉全部权重，没有乘 1 / (1 − p)。应在 softmax 之后丢权重。",
)
def masks_the_dropped_keys(q, k, v, p, training, mask=None, generator=None):
    keep = right.attention_dropout(torch.ones_like(q @ k.transpose(-2, -1)), p, training, generator) != 0
    weights = right.attention_weights(q, k, keep if mask is None else keep & mask)
    return weights @ v, weights


@mistake(
    "attention_with_dropout",
    en="The output is dropped, not the weights. Drop the weights before they are multiplied by v.",
    zh="丢的是输出，不是权重。应在乘 v 之前丢权重。",
)
def drops_the_output(q, k, v, p, training, mask=None, generator=None):
    weights = right.attention_weights(q, k, mask)
    return right.attention_dropout(weights @ v, p, training, generator), weights


@mistake(
    "attention_with_dropout",
    en="Dropout acts twice: on the weights and again on the output. Here only the weights are dropped.",
    zh="dropout 用了两次：先丢权重，又丢输出。这里只丢权重。",
)
def drops_twice(q, k, v, p, training, mask=None, generator=None):
    out, weights = right.attention_with_dropout(q, k, v, p, training, mask, generator)
    return right.attention_dropout(out, p, training, generator), weights


@mistake(
    "attention_with_dropout",
    en="The values are dropped, not the weights.",
    zh="丢的是值，不是权重。",
)
def drops_the_values(q, k, v, p, training, mask=None, generator=None):
    weights = right.attention_weights(q, k, mask)
    return weights @ right.attention_dropout(v, p, training, generator), weights


@mistake(
    "attention_with_dropout",
    en="The weights are normalised again after dropout. Rows sum to 1 only in expectation: multiply by 1 / (1 − p), no more.",
    zh="dropout 之后又把权重重新归一化。每行之和只在期望上为 1：只乘 1 / (1 − p)。",
)
def makes_the_rows_sum_to_one_again(q, k, v, p, training, mask=None, generator=None):
    weights = right.attention_weights(q, k, mask)
    dropped = right.attention_dropout(weights, p, training, generator)
    return (dropped / dropped.sum(-1, keepdim=True)).nan_to_num(0.0) @ v, weights


@mistake(
    "attention_with_dropout",
    en="The kept weights are not scaled up by 1 / (1 − p).",
    zh="留下的权重没有乘以 1 / (1 − p)。",
)
def mixes_without_rescaling(q, k, v, p, training, mask=None, generator=None):
    out, weights = right.attention_with_dropout(q, k, v, p, training, mask, generator)
    return out * (1 - p if training else 1), weights


@mistake(
    "attention_with_dropout",
    en="`generator` never reaches the dropout. Pass it on.",
    zh="`generator` 没有传到 dropout。要把它传下去。",
)
def never_hands_the_generator_on(q, k, v, p, training, mask=None, generator=None):
    return right.attention_with_dropout(q, k, v, p, training, mask)


@mistake(
    "attention_with_dropout",
    en="One pattern is shared by all heads and sequences. Draw a number for every weight.",
    zh="所有头和序列共用一个模式。应为每个权重各抽一个数。",
)
def shares_the_pattern_between_heads(q, k, v, p, training, mask=None, generator=None):
    weights = right.attention_weights(q, k, mask)
    pattern = torch.ones(weights.shape[-2:], dtype=weights.dtype, device=weights.device)
    return (weights * right.attention_dropout(pattern, p, training, generator)) @ v, weights


@mistake(
    "attention_with_dropout",
    en="The mask is ignored.",
    zh="没有使用掩码。",
)
def ignores_the_mask(q, k, v, p, training, mask=None, generator=None):
    return right.attention_with_dropout(q, k, v, p, training, None, generator)


@mistake(
    "attention_with_dropout",
    en="The mask is inverted: True means may look.",
    zh="掩码反了：True 表示「可以看」。",
)
def inverts_the_mask(q, k, v, p, training, mask=None, generator=None):
    return right.attention_with_dropout(q, k, v, p, training, None if mask is None else ~mask, generator)


@mistake(
    "attention_with_dropout",
    en="A query that may look nowhere gives NaN. Its weights and its output must be 0.",
    zh="哪里都不许看的查询得到 NaN。它的权重和输出都应为 0。",
)
def gives_nan_where_nothing_is_allowed(q, k, v, p, training, mask=None, generator=None):
    out, weights = right.attention_with_dropout(q, k, v, p, training, mask, generator)
    if mask is not None:
        blind = ~mask.any(-1, keepdim=True)
        out, weights = out.masked_fill(blind, torch.nan), weights.masked_fill(blind, torch.nan)
    return out, weights


@mistake(
    "attention_with_dropout",
    en="The scores are not divided by √d_k.",
    zh="分数没有除以 √d_k。",
)
def forgets_the_scale(q, k, v, p, training, mask=None, generator=None):
    return right.attention_with_dropout(q * q.shape[-1] ** 0.5, k, v, p, training, mask, generator)


@mistake(
    "attention_with_dropout",
    en="The two results are exchanged: return the output first, then the weights.",
    zh="两个返回值的顺序反了：先返回输出，再返回权重。",
)
def returns_the_weights_first(q, k, v, p, training, mask=None, generator=None):
    return right.attention_with_dropout(q, k, v, p, training, mask, generator)[::-1]


@mistake(
    "attention_with_dropout",
    en="Only the output is returned. Return the pair (out, weights).",
    zh="只返回了输出。应返回一对值 (out, weights)。",
)
def returns_the_output_only(q, k, v, p, training, mask=None, generator=None):
    return right.attention_with_dropout(q, k, v, p, training, mask, generator)[0]
