"""Chapter 7: dropout.

A right answer may draw its random numbers in any way, so two right answers need not agree. A test reads from the answer
which weights were dropped; then the kept weights, the output and the gradients are known exactly. The share of dropped
weights may be off by `SIGMAS` standard deviations. The diagnosis sees only the gist of an answer: facts that do not
depend on which weights were dropped.
"""

import math

import torch

from autograder.exam import SIGMAS, agree, agree_gradients, gradients_match, matches, promise, require
from autograder.exam.sentences import NO_DROPOUT_OUTSIDE_TRAINING
from autograder.reference import ch07_dropout as reference

LOWER = (torch.float32, torch.float16, torch.bfloat16)
ROW_SUM = 1e-6  # only for the gist: is this still a row that sums to 1?


def attention_dropout(weights, keep, p):
    """What the function of this name must return, given what it kept."""
    return reference.surviving(weights, keep, p)


def attention_with_dropout(q, k, v, keep, p, mask=None):
    """What the function of this name must return, given what it kept."""
    weights = reference.attention_weights(q, k, mask)
    return reference.surviving(weights, keep, p) @ v, weights


def share(draw) -> float:
    return (0.25, 0.3)[draw.integer(0, 1)]


def shares_out(draw, *shape, dtype=torch.float64):
    """Rows of weights, none of them 0."""
    return torch.softmax(draw(*shape), -1).to(dtype)


def kept(value, like) -> torch.Tensor:
    """Where the answer is not 0; everywhere if it has the wrong form, so that the comparison says what is wrong."""
    if isinstance(value, torch.Tensor) and value.shape == like.shape:
        return value != 0
    return torch.ones(like.shape, dtype=torch.bool)


def near(number, *others) -> float:
    return min(others, key=lambda other: abs(other - number))


def rounded(number) -> float:
    return float(f"{float(number):.10g}") if math.isfinite(number) else str(number)


def gist(value, weights, p):
    """Facts that do not depend on which weights were dropped: how many, the factor on the others, the pattern."""
    if not isinstance(value, torch.Tensor) or value.shape != weights.shape or value.dtype != weights.dtype:
        return value
    if not value.isfinite().all():
        return ["not finite"]
    there, shared = weights != 0, pattern(value)
    ratios = value[there] / weights[there]
    alive = ratios[ratios != 0]
    gone = near(float((ratios == 0).double().mean()), 0, 0.1, p, 1 - (1 - p) ** 2, 1 - p, 1)
    gone = None if any(shared) else gone  # one pattern is too small a sample for a share
    level = bool(alive.numel()) and bool(alive.max() - alive.min() <= 1e-9 * alive.max())
    one = bool(((value.sum(-1) - 1).abs() <= ROW_SUM)[there.any(-1)].all())
    return [gone, level, rounded(alive.median()) if level else None, one, *shared]


def pattern(value) -> list[bool]:
    """Whether the first axis, the rows or the columns share what they dropped."""
    keep = value != 0
    if bool(keep.all()) or not bool(keep.any()):
        return [False, False, False]
    return [bool((keep == keep.narrow(axis, 0, 1)).all()) for axis in (0, -2, -1)]


def slopes(found, cotangent):
    """The gist of a gradient: its factor where a weight was kept, and where it was dropped."""
    gradient, keep = found.gradients[0], kept(found.value, cotangent)
    if gradient is None or gradient.shape != keep.shape or bool(keep.all()) or not bool(keep.any()):
        return gradient
    factors = gradient / cotangent
    return [rounded(edge) for side in (factors[keep], factors[~keep]) for edge in (side.min(), side.max())]


def require_share(name, keep, p) -> None:
    gone, allowed = float((~keep).double().mean()), SIGMAS * math.sqrt(p * (1 - p) / keep.numel())
    require(
        abs(gone - p) <= allowed,
        f"{name}: {gone:.1%} of the weights are dropped with p = {p:g}; {allowed:.1%} off is allowed",
        f"{name}：p = {p:g} 时丢掉了 {gone:.1%} 的权重，允许相差 {allowed:.1%}",
    )


def drops(value, weights, p) -> None:
    """Every weight is 0 or scaled up, and about a share p of them is 0."""
    keep = kept(value, weights)
    agree(value, attention_dropout, weights, keep, p)
    require_share("attention_dropout", keep, p)


@promise(
    "attention_dropout",
    en="While training, each weight becomes 0 or w / (1 − p).",
    zh="训练时，每个权重变成 0 或 w / (1 − p)。",
    weight=2,
)
def test_each_weight_is_dropped_or_scaled_up(student, draw):
    weights, p = shares_out(draw, 3, 14, 25), share(draw)
    value = student.attention_dropout(weights, p, True, generator=draw.seeded())
    student.replace_transcript(gist(value, weights, p))
    drops(value, weights, p)


@promise(
    "attention_dropout",
    en="A share p of the weights is dropped, whatever p is.",
    zh="丢掉的权重占 p，p 取多少都一样。",
)
def test_the_share_of_dropped_weights_is_p(student, draw):
    weights = shares_out(draw, 5, 40, 30)
    values = {p: student.attention_dropout(weights, p, True, generator=draw.seeded()) for p in (0.1, 0.25, 0.7)}
    student.replace_transcript([gist(value, weights, p) for p, value in values.items()])
    for p, value in values.items():
        drops(value, weights, p)


@promise(
    "attention_dropout",
    en="Outside training the weights come back as they are; weights are dropped only in training.",
    zh="不训练时权重原样返回；只有训练时才丢。",
)
def test_only_training_drops(student, draw):
    weights, p = shares_out(draw, 3, 14, 25), share(draw)
    resting = student.attention_dropout(weights, p, False, generator=draw.seeded())
    training = student.attention_dropout(weights, p, True, generator=draw.seeded())
    student.replace_transcript([gist(resting, weights, p), gist(training, weights, p)])
    agree(resting, reference.attention_dropout, weights, p, False)
    drops(training, weights, p)


@promise(
    "attention_dropout",
    en="p = 0 drops nothing and p = 1 drops everything: zeros, not NaN.",
    zh="p = 0 什么也不丢，p = 1 全部丢掉：得到 0，不是 NaN。",
)
def test_the_two_ends_of_p(student, draw):
    weights, p, cotangent = shares_out(draw, 3, 14, 25), share(draw), draw(3, 14, 25)
    gradients_match(student, reference.attention_dropout, weights, 1.0, True, wrt=(0,), cotangents=(cotangent,))
    gradients_match(student, reference.attention_dropout, weights, 0.0, True, wrt=(0,), cotangents=(cotangent,))
    value = student.attention_dropout(weights, p, True, generator=draw.seeded())
    student.replace_transcript(gist(value, weights, p))
    drops(value, weights, p)


@promise(
    "attention_dropout",
    en="The gradient passes where a weight was kept, times 1 / (1 − p), and nowhere else.",
    zh="梯度只从保留下来的权重通过，乘以 1 / (1 − p)，别处为 0。",
)
def test_the_backward_pass_uses_the_same_mask(student, draw):
    weights, p, cotangent = shares_out(draw, 3, 14, 25), share(draw), draw(3, 14, 25)
    asked = {"wrt": (0,), "cotangents": (cotangent,)}
    found = student.vjp("attention_dropout", weights, p, True, generator=draw.seeded(), **asked)
    student.replace_transcript([gist(found.value, weights, p), slopes(found, cotangent)])
    drops(found.value, weights, p)
    agree_gradients(found.gradients, attention_dropout, weights, kept(found.value, weights), p, **asked)


@promise(
    "attention_dropout",
    en="The same seed drops the same weights; another seed drops others.",
    zh="种子相同，丢掉的权重就相同；换一个种子，丢掉的就不同。",
)
def test_the_generator_decides(student, draw):
    weights, p, seed, other = shares_out(draw, 3, 14, 25), share(draw), draw.seeded(), draw.seeded()
    first, again, different = (student.attention_dropout(weights, p, True, generator=g) for g in (seed, seed, other))
    student.replace_transcript([same(first, again), same(first, different), gist(first, weights, p)])
    drops(first, weights, p)
    require(
        same(first, again),
        "attention_dropout: two generators with the same seed drop different weights; is `generator` used?",
        "attention_dropout：两个种子相同的生成器丢掉了不同的权重；用上 `generator` 了吗？",
    )
    require(
        not same(first, different),
        "attention_dropout: generators with different seeds drop the same weights",
        "attention_dropout：种子不同的生成器丢掉了相同的权重",
    )


def same(one, other) -> bool:
    return isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and torch.equal(one, other)


@promise(
    "attention_dropout",
    en="Without a generator every call drops other weights.",
    zh="不给生成器时，每次调用丢掉的权重都不同。",
)
def test_without_a_generator_every_call_differs(student, draw):
    weights, p = shares_out(draw, 3, 14, 25), share(draw)
    first, second = student.attention_dropout(weights, p, True), student.attention_dropout(weights, p, True)
    student.replace_transcript([same(first, second), gist(first, weights, p)])
    drops(first, weights, p)
    drops(second, weights, p)
    require(
        not same(first, second),
        "attention_dropout: without a generator two calls drop the same weights",
        "attention_dropout：不给生成器时，两次调用丢掉了相同的权重",
    )


@promise(
    "attention_dropout",
    en="Every weight is decided on its own: sequences, heads, queries and keys share nothing.",
    zh="每个权重单独决定去留：各序列、各头、各查询、各键互不共用。",
)
def test_every_weight_is_decided_on_its_own(student, draw):
    weights, p = shares_out(draw, 2, 3, 14, 25), share(draw)
    value = student.attention_dropout(weights, p, True, generator=draw.seeded())
    student.replace_transcript(gist(value, weights, p))
    drops(value, weights, p)
    keep = kept(value, weights)
    for axis, en, zh in (
        (0, "sequences", "各序列"),
        (1, "heads", "各头"),
        (2, "queries", "各查询"),
        (3, "keys", "各键"),
    ):
        require(
            not bool((keep == keep.narrow(axis, 0, 1)).all()),
            f"attention_dropout: all {en} drop the same weights",
            f"attention_dropout：{zh}丢掉的权重完全相同",
        )


@promise(
    "attention_dropout",
    en="On average over many draws nothing changes.",
    zh="抽很多次取平均，权重不变。",
)
def test_the_expectation_stays_the_same(student, draw):
    weights, p, draws = shares_out(draw, 4, 6), share(draw), 900
    value = student.attention_dropout(weights.expand(draws, 4, 6), p, True, generator=draw.seeded())
    student.replace_transcript(gist(value, weights.expand(draws, 4, 6), p))
    drops(value, weights.expand(draws, 4, 6), p)
    off = (value.mean(0) - weights).abs() / weights
    require(
        bool((off <= SIGMAS * math.sqrt(p / ((1 - p) * draws))).all()),
        f"attention_dropout: the mean of {draws} draws is off by {float(off.max()):.0%}",
        f"attention_dropout：{draws} 次抽取的平均值相差 {float(off.max()):.0%}",
    )


@promise(
    "attention_dropout",
    en="p below 0 or above 1 raises ValueError.",
    zh="p 小于 0 或大于 1 时抛出 ValueError。",
)
def test_a_p_that_is_no_probability_is_refused(student, draw):
    weights, p = shares_out(draw, 3, 14, 25), share(draw)
    refused = {bad: student.refuses("attention_dropout", weights, bad, True) for bad in (-0.25, 1.5)}
    kinds = student.error_kinds()
    value = student.attention_dropout(weights, p, True, generator=draw.seeded())
    student.replace_transcript([kinds, gist(value, weights, p)])
    for bad, answer in refused.items():
        require(
            answer,
            f"attention_dropout: p = {bad:g} does not raise ValueError",
            f"attention_dropout：p = {bad:g} 没有抛出 ValueError",
        )
    drops(value, weights, p)


@promise(
    "attention_dropout",
    en="Works in float32 and in 16 bits, and the dtype stays.",
    zh="在 float32 和 16 位下都正确，dtype 不变。",
)
def test_dropping_in_lower_precision(student, draw):
    p, given = share(draw), [shares_out(draw, 3, 14, 25, dtype=dtype) for dtype in LOWER]
    values = [student.attention_dropout(weights, p, True, generator=draw.seeded()) for weights in given]
    student.replace_transcript([coarse_gist(value, weights, p) for value, weights in zip(values, given, strict=True)])
    for value, weights in zip(values, given, strict=True):
        drops(value, weights, p)


def coarse_gist(value, weights, p):
    """The gist in low precision, where rounding blurs the factor."""
    if not isinstance(value, torch.Tensor) or value.shape != weights.shape or not value.is_floating_point():
        return value
    inner = gist(value.double(), weights.double(), p)
    factor = (value.double() / weights.double())[value != 0].median()
    return [str(value.dtype), *inner[:1], *inner[3:], float(f"{float(factor):.2g}")]


@promise(
    "attention_dropout",
    en="Any number of leading axes works; the weights you are given stay as they were.",
    zh="前面有几个批次轴都可以；传入的权重不被改动。",
)
def test_any_shape_and_the_weights_are_left_alone(student, draw):
    p, values, changed = share(draw), [], []
    given = shares_out(draw, 32, 30), shares_out(draw, 4, 2, 3, 6, 7)
    for weights in given:
        values.append(student.attention_dropout(weights, p, True, generator=draw.seeded()))
        changed.append(student.changed_inputs())
    student.replace_transcript(
        [changed, *(gist(value, weights, p) for value, weights in zip(values, given, strict=True))]
    )
    require(
        not any(changed),
        "attention_dropout: the weights you were given were changed",
        "attention_dropout：传入的权重被改动了",
    )
    for value, weights in zip(values, given, strict=True):
        drops(value, weights, p)


# attention_with_dropout. The first columns of v are a diagonal, so the output shows which weights were dropped.

LQ, LK, WIDTH = 14, 25, 27


def drawn(draw, *lead, dtype=torch.float64):
    """q, k, v with pairwise distinct sizes; √d is a whole number, because many people compute it in float32."""
    v = draw(*lead, LK, WIDTH)
    v[..., :LK] = torch.diag_embed(v[..., :LK].diagonal(dim1=-2, dim2=-1).abs() + 1)
    return draw(*lead, LQ, 9, dtype=dtype), draw(*lead, LK, 9, dtype=dtype), v.to(dtype)


def mixed(value, v):
    """The weights that mixed the values, read from the output; None if the output has the wrong form."""
    out = value[0] if isinstance(value, tuple | list) and len(value) == 2 else None
    if not isinstance(out, torch.Tensor) or out.shape != (*v.shape[:-2], LQ, WIDTH):
        return None
    return out[..., :LK] / v[..., :LK].diagonal(dim1=-2, dim2=-1).unsqueeze(-2)


def whole_gist(value, q, k, v, p, mask=None):
    """Facts that do not depend on which weights were dropped: what mixed the values, and what was returned."""
    dropped = mixed(value, v)
    if dropped is None or not isinstance(value[1], torch.Tensor) or value[1].shape != dropped.shape:
        return value
    truth, returned = reference.attention_weights(q, k, mask), value[1]
    return [
        gist(dropped, truth, p),
        gist(returned, truth, p),
        close(returned, truth),
        close(returned, dropped),
        close(value[0], dropped @ v),
        bool(returned.isfinite().all()),
    ]


def close(one, other) -> bool:
    return one.dtype == other.dtype and torch.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True)


def attends(value, q, k, v, p, mask=None) -> None:
    """The output mixes the values by the kept weights, and the returned weights are those before dropout."""
    dropped = mixed(value, v)
    keep = torch.ones(*v.shape[:-2], LQ, LK, dtype=torch.bool) if dropped is None else dropped != 0
    agree(value, attention_with_dropout, q, k, v, keep, p, mask)
    require_share("attention_with_dropout", keep if mask is None else keep[mask.expand(keep.shape)], p)


@promise(
    "attention_with_dropout",
    en="Without dropout it is attention: p = 0 while training, with and without a mask.",
    zh="不丢时就是注意力：训练且 p = 0，有掩码或没有掩码。",
)
def test_without_dropout_it_is_attention(student, draw):
    q, k, v = drawn(draw, 3)
    matches(student, reference.attention_with_dropout, q, k, v, 0.0, True)
    matches(student, reference.attention_with_dropout, q, k, v, 0.0, True, mask=draw.mask(3, LQ, LK))
    matches(student, reference.attention_with_dropout, q, k, v, 0.0, True, draw.mask(LQ, LK))


@promise(
    "attention_with_dropout",
    en="While training, the output is the dropped and scaled weights times v.",
    zh="训练时，输出是丢弃并放大之后的权重乘以 v。",
    weight=2,
)
def test_the_output_mixes_by_the_dropped_weights(student, draw):
    q, k, v = drawn(draw, 3)
    p = share(draw)
    value = student.attention_with_dropout(q, k, v, p, True, generator=draw.seeded())
    student.replace_transcript(whole_gist(value, q, k, v, p))
    attends(value, q, k, v, p)


@promise(
    "attention_with_dropout",
    en="The weights are returned as they were before dropout: each row sums to 1.",
    zh="返回的是 dropout 之前的权重：每行之和为 1。",
)
def test_the_weights_are_returned_whole(student, draw):
    q, k, v = drawn(draw, 2)
    p = share(draw)
    value = student.attention_with_dropout(q, k, v, p, True, generator=draw.seeded())
    student.replace_transcript([whole_gist(value, q, k, v, p)])
    returned = value[1] if isinstance(value, tuple | list) and len(value) == 2 else None
    if isinstance(returned, torch.Tensor) and returned.shape == (2, LQ, LK):
        require(
            bool((returned != 0).all()),
            "attention_with_dropout → weights: some are 0; return them as they were before dropout",
            "attention_with_dropout → weights：有的权重是 0；应返回 dropout 之前的权重",
        )
    attends(value, q, k, v, p)


@promise("attention_with_dropout", NO_DROPOUT_OUTSIDE_TRAINING)
def test_nothing_is_dropped_outside_training(student, draw):
    q, k, v = drawn(draw, 3)
    p = share(draw)
    resting = student.attention_with_dropout(q, k, v, p, False, generator=draw.seeded())
    training = student.attention_with_dropout(q, k, v, p, True, generator=draw.seeded())
    student.replace_transcript([whole_gist(resting, q, k, v, p), whole_gist(training, q, k, v, p)])
    agree(resting, reference.attention_with_dropout, q, k, v, p, False)
    attends(training, q, k, v, p)


@promise(
    "attention_with_dropout",
    en="The dropout rate is the p that was asked for.",
    zh="要的 p 是多少，起作用的 p 就是多少。",
)
def test_the_p_that_is_asked_for_acts(student, draw):
    q, k, v = drawn(draw, 3)
    values = {p: student.attention_with_dropout(q, k, v, p, True, generator=draw.seeded()) for p in (0.25, 0.5, 0.7)}
    student.replace_transcript([whole_gist(value, q, k, v, p) for p, value in values.items()])
    for p, value in values.items():
        attends(value, q, k, v, p)


@promise(
    "attention_with_dropout",
    en="A mask and dropout work together; a query that may look nowhere still gets 0.",
    zh="掩码和 dropout 一起用也正确；哪里都不许看的查询仍得到 0。",
)
def test_a_mask_and_dropout_together(student, draw):
    q, k, v = drawn(draw, 3)
    p, mask = share(draw), draw.mask(3, LQ, LK)
    mask[1, 2] = False
    value = student.attention_with_dropout(q, k, v, p, True, mask=mask, generator=draw.seeded())
    student.replace_transcript(whole_gist(value, q, k, v, p, mask))
    attends(value, q, k, v, p, mask)


@promise(
    "attention_with_dropout",
    en="p = 1 gives an output of zeros and the full weights; p outside [0, 1] raises ValueError.",
    zh="p = 1 时输出为 0、权重完整；p 不在 [0, 1] 内时抛出 ValueError。",
)
def test_p_one_and_p_that_is_no_probability(student, draw):
    q, k, v = drawn(draw, 2)
    matches(student, reference.attention_with_dropout, q, k, v, 1.0, True)
    for bad in (-0.25, 1.5):
        require(
            student.refuses("attention_with_dropout", q, k, v, bad, True),
            f"attention_with_dropout: p = {bad:g} does not raise ValueError",
            f"attention_with_dropout：p = {bad:g} 没有抛出 ValueError",
        )


@promise(
    "attention_with_dropout",
    en="Gradients pass through the same weights as the output: what is dropped forward is dropped backward.",
    zh="梯度沿输出的来路返回：前向和反向丢的是同一批权重。",
)
def test_gradients_go_through_the_kept_weights(student, draw):
    q, k, v = drawn(draw, 2)
    p, mask = share(draw), draw.mask(2, LQ, LK)
    mask[0, 1] = False
    asked = {"wrt": (0, 1, 2), "cotangents": (draw(2, LQ, WIDTH), None)}
    found = student.vjp("attention_with_dropout", q, k, v, p, True, mask, generator=draw.seeded(), **asked)
    dropped = mixed(found.value, v)
    reached = [gradient is not None and bool(gradient.any()) for gradient in found.gradients]
    finite = [gradient is None or bool(gradient.isfinite().all()) for gradient in found.gradients]
    student.replace_transcript([whole_gist(found.value, q, k, v, p, mask), reached, finite])
    attends(found.value, q, k, v, p, mask)
    agree_gradients(found.gradients, attention_with_dropout, q, k, v, dropped != 0, p, mask, **asked)


@promise(
    "attention_with_dropout",
    en="The generator decides what is dropped; without one, every call differs.",
    zh="丢什么由生成器决定；不给生成器时，每次调用都不同。",
)
def test_the_generator_reaches_the_dropout(student, draw):
    q, k, v = drawn(draw, 3)
    p, seed, other = share(draw), draw.seeded(), draw.seeded()
    with_one = [student.attention_with_dropout(q, k, v, p, True, generator=g) for g in (seed, seed, other)]
    without = [student.attention_with_dropout(q, k, v, p, True) for _ in range(2)]
    a, b, c, d, e = (mixed(value, v) for value in (*with_one, *without))
    repeats = [same(a, b), same(a, c), same(d, e)]
    student.replace_transcript([repeats, whole_gist(with_one[0], q, k, v, p)])
    for value in (*with_one, *without):
        attends(value, q, k, v, p)
    require(
        repeats == [True, False, False],
        "attention_with_dropout: the same seed must drop the same weights, and only the same seed",
        "attention_with_dropout：种子相同才丢掉相同的权重，种子不同则不同",
    )


@promise(
    "attention_with_dropout",
    en="Heads and sequences drop different weights; any number of leading axes works, including none.",
    zh="各头、各序列丢掉的权重不同；前面有几个批次轴都可以，没有也行。",
)
def test_any_leading_axes_each_with_its_own_dropout(student, draw):
    p, several, single = share(draw), drawn(draw, 2, 3), drawn(draw)
    value = student.attention_with_dropout(*several, p, True, generator=draw.seeded())
    alone = student.attention_with_dropout(*single, p, True, generator=draw.seeded())
    student.replace_transcript([whole_gist(value, *several, p), whole_gist(alone, *single, p)])
    attends(value, *several, p)
    attends(alone, *single, p)
    keep = mixed(value, several[2]) != 0
    for axis, en, zh in ((0, "sequences", "各序列"), (1, "heads", "各头"), (2, "queries", "各查询")):
        require(
            not bool((keep == keep.narrow(axis, 0, 1)).all()),
            f"attention_with_dropout: all {en} drop the same weights",
            f"attention_with_dropout：{zh}丢掉的权重完全相同",
        )


@promise(
    "attention_with_dropout",
    en="Works in float32 and in 16 bits; the inputs stay as they were.",
    zh="在 float32 和 16 位下都正确；不改动输入。",
)
def test_attending_in_lower_precision(student, draw):
    p, mask = share(draw), draw.mask(3, LQ, LK)
    for dtype in LOWER:
        q, k, v = drawn(draw, 3, dtype=dtype)
        value = student.attention_with_dropout(q, k, v, p, True, mask=mask, generator=draw.seeded())
        require(
            not student.changed_inputs(),
            "attention_with_dropout: the inputs were changed",
            "attention_with_dropout：输入被改动了",
        )
        attends(value, q, k, v, p, mask)
