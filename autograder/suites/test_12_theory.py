"""Chapter 12: what attention can and cannot express. Heads are judged by the weights they make, whatever their width."""

import torch

from autograder.exam import left_alone, matches, promise, require
from autograder.exam.sentences import FLOAT32_AND_BFLOAT16, INPUTS_STAY
from autograder.reference import ch12_theory as reference

CLOSE = 1e-6  # the exercise promises this: "≈ 1" means within one part in a million, for up to 12 tokens


def drawn(draw, lq=7, lk=9, d=4, scale=1.0, dtype=torch.float64):
    return draw(lq, d, scale=scale, dtype=dtype), draw(lk, d, scale=scale, dtype=dtype)


@promise(
    "log_weight_rank",
    en="Queries and keys of width d_k give log-weights of rank d_k + 1, whatever the lengths.",
    zh="宽度为 d_k 的查询和键，不论多长，对数权重的秩都是 d_k + 1。",
    weight=2,
)
def test_the_rank_is_the_width_and_one_more(student, draw):
    matches(student, reference.log_weight_rank, *drawn(draw))
    matches(student, reference.log_weight_rank, *drawn(draw, lq=8, lk=6, d=1))


@promise(
    "log_weight_rank",
    en="With few queries or few keys, the rank is no larger than their number.",
    zh="查询或键很少时，秩不超过它们的个数。",
)
def test_short_sequences_have_small_rank(student, draw):
    matches(student, reference.log_weight_rank, *drawn(draw, lq=3, lk=8))
    matches(student, reference.log_weight_rank, *drawn(draw, lq=7, lk=2))


@promise(
    "log_weight_rank",
    en="The rank is measured: special queries and keys stay below the bound.",
    zh="秩是测出来的：特殊的查询和键达不到上界。",
    weight=2,
)
def test_special_queries_and_keys_stay_below_the_bound(student, draw):
    q, k = drawn(draw)
    k[:, 1] = 1.0  # the row of ones, which the normaliser adds, is already there
    matches(student, reference.log_weight_rank, q, k)
    q, k = drawn(draw, lq=9, lk=8)
    q[:, 2] = 1.0  # does not lower the rank: the normaliser is another column
    matches(student, reference.log_weight_rank, q, k)
    q, k = drawn(draw)
    q[:, 3] = q[:, 0]
    matches(student, reference.log_weight_rank, q, k)
    matches(student, reference.log_weight_rank, q, k[:1].expand(6, 4).clone())  # equal keys, equal weights


@promise(
    "log_weight_rank",
    en="The scores are divided by √d_k, and `tolerance` is relative to the largest singular value.",
    zh="分数除以 √d_k；`tolerance` 相对于最大的奇异值。",
)
def test_the_tolerance_is_relative_and_the_scores_are_scaled(student, draw):
    q, k = drawn(draw, lk=8, d=9, scale=0.3)
    flat, right, steep = (_second_share(q @ k.T / scale) for scale in (9, 3, 1))
    for tolerance in ((right * steep) ** 0.5, (right * flat) ** 0.5):
        matches(student, reference.log_weight_rank, q, k, tolerance=tolerance)


def _second_share(scores):
    values = torch.linalg.svdvals(torch.log_softmax(scores, -1))
    return float(values[1] / values[0])


@promise(
    "log_weight_rank",
    en="By default a direction of 1e-11 is not counted and one of 1e-5 is.",
    zh="默认情况下，大小 1e-11 的方向不算，1e-5 的算。",
)
def test_the_default_tolerance(student, draw):
    for size in (1e-5, 1e-11):
        q, k = drawn(draw)
        q[:, 1] *= size
        matches(student, reference.log_weight_rank, q, k)


@promise(
    "log_weight_rank",
    en="Scores may be thousands apart.",
    zh="分数可以相差几千。",
)
def test_scores_far_apart(student, draw):
    matches(student, reference.log_weight_rank, *drawn(draw, scale=60.0))


@promise(
    "log_weight_rank",
    en="Everything is computed in float64, from float32 and 16-bit inputs too.",
    zh="全程用 float64 计算；输入是 float32 或 16 位时也一样。",
)
def test_lower_precision_is_raised_first(student, draw):
    for dtype in (torch.float32, torch.bfloat16):
        matches(student, reference.log_weight_rank, *drawn(draw, dtype=dtype))


@promise("log_weight_rank", INPUTS_STAY)
def test_queries_and_keys_are_left_alone(student, draw):
    left_alone(student, reference.log_weight_rank, *drawn(draw))


def weights_of(student, name, length, *args, **kwargs):
    """The weights that the student's queries and keys give, after a check of their form."""
    value = getattr(student, name)(*args, **kwargs)
    require(
        isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(x, torch.Tensor) for x in value),
        f"{name}: does not return a pair of tensors (q, k)",
        f"{name}：返回的不是一对张量 (q, k)",
    )
    q, k = value
    require(
        q.dim() == k.dim() == 2 and len(q) == len(k) == length and q.shape[1] == k.shape[1] > 0,
        f"{name}: q {list(q.shape)} and k {list(k.shape)}, expected [{length}, d] twice with the same d",
        f"{name}：q 为 {list(q.shape)}，k 为 {list(k.shape)}，应当都是 [{length}, d]，且 d 相同",
    )
    require(
        q.is_floating_point() and q.dtype == k.dtype,
        f"{name}: q is {q.dtype} and k is {k.dtype}; q @ k.T needs one floating dtype",
        f"{name}：q 是 {q.dtype}，k 是 {k.dtype}；q @ k.T 需要同一种浮点类型",
    )
    require(
        bool(q.isfinite().all() and k.isfinite().all()),
        f"{name}: q or k holds inf or NaN, and inf × 0 is NaN",
        f"{name}：q 或 k 里有 inf 或 NaN，而 inf × 0 等于 NaN",
    )
    weights = torch.softmax(q.double() @ k.double().T / q.shape[1] ** 0.5, -1)
    student.replace_last_answer(weights)  # a mistake is recognised by its weights, whatever its width
    return weights


def looks_at(student, name, targets, *args, **kwargs):
    """With the default sharpness, token i gives all its weight to token targets[i]."""
    weights = weights_of(student, name, len(targets), *args, **kwargs)
    i = int(weights.gather(1, targets[:, None]).argmin())
    target, favourite = int(targets[i]), int(weights[i].argmax())
    share = float(weights[i, target])
    require(
        share >= 1 - CLOSE,
        f"{name}: token {i} gives token {target} the weight {share:.3g}, expected 1; its largest weight is on token {favourite}",
        f"{name}：词元 {i} 给词元 {target} 的权重是 {share:.3g}，应为 1；它最看重的是词元 {favourite}",
    )


def sharpens(student, name, targets, *args):
    """Almost no sharpness, almost equal weights; more sharpness, more weight in the right place."""
    looks_at(student, name, targets, *args)
    even = weights_of(student, name, len(targets), *args, sharpness=1e-9)
    require(
        float((even - 1 / len(targets)).abs().max()) <= CLOSE,
        f"{name}: with sharpness 1e-9 the weights are not equal",
        f"{name}：sharpness 为 1e-9 时，权重并不相等",
    )
    before = torch.full((len(targets),), 1 / len(targets), dtype=torch.float64)
    for sharpness in (0.5, 2.0, 8.0):
        weights = weights_of(student, name, len(targets), *args, sharpness=sharpness)
        now = weights.gather(1, targets[:, None])[:, 0]
        require(
            bool((now > before).all() and (weights.argmax(1) == targets).all()),
            f"{name}: raising the sharpness to {sharpness:g} does not raise the weight in the right place",
            f"{name}：把 sharpness 提高到 {sharpness:g}，该看的位置的权重没有变大",
        )
        before = now


def cycle(draw, n):
    """A permutation that is not its own inverse and leaves nothing in place."""
    order, perm = draw.permutation(n), torch.empty(n, dtype=torch.int64)
    perm[order] = order.roll(1)
    return perm


@promise(
    "permutation_head",
    en="Token i gives all its weight to token perm[i].",
    zh="词元 i 把全部权重给词元 perm[i]。",
    weight=2,
)
def test_every_token_looks_where_the_permutation_says(student, draw):
    for n in (2, draw.integer(5, 7), draw.integer(8, 12)):
        perm = draw.permutation(n)
        perm = perm.roll(1) if torch.equal(perm, torch.arange(n)) else perm
        looks_at(student, "permutation_head", perm, perm)


@promise(
    "permutation_head",
    en="A permutation and its inverse are two different heads.",
    zh="一个置换和它的逆是两个不同的头。",
)
def test_a_cycle_goes_round_the_right_way(student, draw):
    perm = cycle(draw, draw.integer(4, 9))
    for one in (perm, perm.argsort()):
        looks_at(student, "permutation_head", one, one)


@promise(
    "permutation_head",
    en="Sharpness works: almost none gives equal weights, and more gives more weight to the right token.",
    zh="sharpness 起作用：几乎为零时权重相等，越大则该看的词元权重越大。",
)
def test_a_permutation_can_be_blurred(student, draw):
    perm = cycle(draw, draw.integer(4, 9))
    sharpens(student, "permutation_head", perm, perm)


@promise(
    "permutation_head",
    en="The permutation you are given stays as it was.",
    zh="传入的置换不被改动。",
)
def test_the_permutation_is_left_alone(student, draw):
    perm = cycle(draw, draw.integer(4, 9))
    require(
        not student.changes_inputs("permutation_head", perm),
        "permutation_head: the permutation was changed",
        "permutation_head：传入的置换被改动了",
    )
    looks_at(student, "permutation_head", perm, perm)


def previous(n):
    return torch.arange(-1, n - 1).clamp(min=0)


@promise(
    "previous_token_head",
    en="Token i gives all its weight to token i − 1.",
    zh="词元 i 把全部权重给词元 i − 1。",
    weight=2,
)
def test_every_token_looks_one_back(student, draw):
    for n in (draw.integer(4, 7), draw.integer(8, 12)):
        looks_at(student, "previous_token_head", previous(n), n)


@promise(
    "previous_token_head",
    en="Token 0 looks at itself, and sequences of one and two tokens work.",
    zh="词元 0 看自己；只有一个或两个词元的序列也正确。",
)
def test_the_first_token_looks_at_itself(student, draw):
    for n in (2, 1, draw.integer(3, 9)):
        looks_at(student, "previous_token_head", previous(n), n)


@promise(
    "previous_token_head",
    en="Sharpness works: almost none gives equal weights, and more gives more weight to the token before.",
    zh="sharpness 起作用：几乎为零时权重相等，越大则前一个词元的权重越大。",
)
def test_a_look_back_can_be_blurred(student, draw):
    n = draw.integer(4, 9)
    sharpens(student, "previous_token_head", previous(n), n)


def tokens(draw, n=5, d=9, scale=0.8, dtype=torch.float64):
    """Tokens with a common part, so that their mean is not 0; √d is a whole number."""
    return draw(n, d, scale=scale, dtype=dtype) + draw(d, scale=0.4, dtype=dtype)


@promise(
    "rank_collapse",
    en="Without a skip, each layer is softmax(x xᵀ/√d) x, with weights computed again from the current x.",
    zh="没有残差时，每层是 softmax(x xᵀ/√d) x，权重由当前的 x 重新算出。",
    weight=2,
)
def test_bare_attention_collapses(student, draw):
    matches(student, reference.rank_collapse, tokens(draw), 4, False)
    matches(student, reference.rank_collapse, tokens(draw, n=7, d=4), 3, skip=False)


@promise(
    "rank_collapse",
    en="With a skip, each layer adds its own input.",
    zh="有残差时，每层再加上这一层自己的输入。",
    weight=2,
)
def test_a_skip_holds_the_tokens_apart(student, draw):
    matches(student, reference.rank_collapse, tokens(draw), 4, True)
    matches(student, reference.rank_collapse, tokens(draw, n=7, d=4), 3, skip=True)


@promise(
    "rank_collapse",
    en="The first entry belongs to the input itself; depth 0 gives only this entry.",
    zh="第一个数属于输入本身；depth 为 0 时只有它。",
)
def test_the_input_is_measured_too(student, draw):
    x = tokens(draw, scale=3.0)
    matches(student, reference.rank_collapse, x, 0, True)
    matches(student, reference.rank_collapse, x, 1, False)


@promise(
    "rank_collapse",
    en="It measures how far the tokens are from being all equal: adding one vector to all of them lowers it, and scaling x does not hide it.",
    zh="量的是离「所有词元相同」有多远：给所有词元加上同一个向量会让它变小，放大 x 不会掩盖它。",
)
def test_a_common_vector_is_no_distance(student, draw):
    x = tokens(draw)
    matches(student, reference.rank_collapse, x + draw(9, scale=4.0), 2, False)
    matches(student, reference.rank_collapse, 5 * x, 2, True)


@promise(
    "rank_collapse",
    en="The smallest distances are right too, down to rounding.",
    zh="再小的距离也正确，一直到舍入误差为止。",
)
def test_small_distances_do_not_cancel(student, draw):
    x = tokens(draw)
    matches(student, reference.rank_collapse, 1e-7 * x + draw(9), 1, True)
    matches(student, reference.rank_collapse, 0.3 * x, 9, False)


@promise("rank_collapse", FLOAT32_AND_BFLOAT16)
def test_collapse_in_lower_precision(student, draw):
    for dtype in (torch.float32, torch.bfloat16):
        for skip in (False, True):
            matches(student, reference.rank_collapse, tokens(draw, dtype=dtype), 2, skip)


@promise(
    "rank_collapse",
    en="The tokens you are given stay as they were, and asking twice gives the same.",
    zh="不改动传入的词元，问两次答案相同。",
)
def test_tokens_are_left_alone(student, draw):
    left_alone(student, reference.rank_collapse, tokens(draw), 3, True)
    left_alone(student, reference.rank_collapse, tokens(draw), 3, False)
