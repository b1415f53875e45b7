"""Chapter 16: FlashAttention."""

import torch

from autograder.exam import agree, fits_in, gradients_match, grows_at_most, left_alone, matches, promise, require, vjp
from autograder.exam.sentences import (
    ANY_LENGTH,
    HIDDEN_TILES_ARE_SKIPPED,
    LOW_PRECISION_AND_INPUTS,
    LOW_PRECISION_AXES_AND_INPUTS,
)
from autograder.reference import ch16_flash as reference

LENGTHS = (60, 120)  # in blocks of 20
BLOCK = 8  # the block size where skipped tiles are counted
SPARE = 1.1  # allowed work, relative to the tiles that must be computed

# online_softmax


@promise(
    "online_softmax",
    en="The weights are those of softmax, whatever the block size.",
    zh="不论块多大，得到的都是 softmax 的权重。",
    weight=2,
)
def test_it_is_softmax_at_any_block(student, draw):
    x = draw(3, 12, scale=2.0)
    for block in (4, 3, 1, 6):
        matches(student, reference.online_softmax, x, block)


@promise(
    "online_softmax",
    en="The last block may be shorter; the block may be longer than the row.",
    zh="最后一块可以不满；块也可以比整行还长。",
)
def test_the_last_block_may_be_shorter(student, draw):
    for n, block in ((11, 4), (7, 5), (5, 8), (1, 3)):
        matches(student, reference.online_softmax, draw(2, n), block)


@promise(
    "online_softmax",
    en="No reduction runs over more than `block` numbers.",
    zh="任何一次归约都不超过 `block` 个数。",
    weight=2,
)
def test_no_reduction_over_more_than_a_block(student, draw):
    for n, block in ((61, 8), (23, 5)):
        x = draw(3, n)
        matches(student, reference.online_softmax, x, block)
        widest = student.measure("online_softmax", x, block).get("reduced", 0)
        require(
            widest <= block,
            f"online_softmax: {widest} numbers are reduced at once; the block is {block}",
            f"online_softmax：一次归约了 {widest} 个数，而块的大小是 {block}",
        )


@promise(
    "online_softmax",
    en="Large scores do not overflow and very negative ones do not vanish, in whatever order the largest comes.",
    zh="分数很大也不上溢，很小也不消失，不论最大的数在哪一块出现。",
)
def test_it_is_stable(student, draw):
    x = draw(3, 10)
    for shift in (2000.0, -2000.0):
        matches(student, reference.online_softmax, x + shift, 4)
    slope = 400.0 * torch.arange(10, dtype=torch.float64)
    matches(student, reference.online_softmax, x + slope, 4)
    matches(student, reference.online_softmax, x - slope, 4)


@promise(
    "online_softmax",
    en="Entries of −inf get weight 0, also where they fill the first blocks; a row of nothing else gives zeros.",
    zh="−inf 的位置权重为 0，即使前几块全是 −inf；整行都是 −inf 时得到全零。",
    weight=2,
)
def test_minus_infinity(student, draw):
    x = draw(5, 10)
    x[0, 7:], x[1, ::2], x[2, :5] = -torch.inf, -torch.inf, -torch.inf
    matches(student, reference.online_softmax, x, 3)
    x[3] = -torch.inf
    matches(student, reference.online_softmax, x, 3)


@promise(
    "online_softmax",
    en="The last axis is normalised, with any number of axes before it.",
    zh="归一化沿最后一个轴，前面有几个轴都可以。",
)
def test_any_axes_before_the_last(student, draw):
    matches(student, reference.online_softmax, draw(7), 3)
    matches(student, reference.online_softmax, draw(2, 5, 4, 7), 3)


@promise("online_softmax", LOW_PRECISION_AND_INPUTS)
def test_online_softmax_in_lower_precision(student, draw):
    left_alone(student, reference.online_softmax, draw(3, 11, dtype=torch.float32), 4)
    matches(student, reference.online_softmax, draw(3, 11, dtype=torch.bfloat16), 4)


# merge_partial


def partial(draw, *lead, length=5, width=4, scale=1.0, shift=0.0):
    return draw(*lead, length, width), draw(*lead, length, scale=scale) + shift


@promise(
    "merge_partial",
    en="Attention over all keys, from attention over two halves.",
    zh="由两部分键各自的注意力，得到对全部键的注意力。",
    weight=2,
)
def test_two_halves_make_a_whole(student, draw):
    q, k, v = draw(2, 5, 4), draw(2, 9, 4), draw(2, 9, 6)
    halves = [reference.flash_forward(q, k[:, part], v[:, part]) for part in (slice(0, 6), slice(6, 9))]
    value = matches(student, reference.merge_partial, *halves[0], *halves[1])
    agree(value, merged, q, k, v)


def merged(q, k, v):
    return reference.flash_forward(q, k, v)


merged.returns = ("o", "lse")


@promise(
    "merge_partial",
    en="Any order and any grouping give the same.",
    zh="换顺序、换分组，结果都一样。",
)
def test_any_order_and_any_grouping(student, draw):
    parts = [partial(draw, 3, scale=2.0) for _ in range(3)]
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        first, second, third = (parts[i] for i in order)
        matches(student, reference.merge_partial, *reference.merge_partial(*first, *second), *third)


@promise(
    "merge_partial",
    en="An empty part (lse −inf) changes nothing, on either side.",
    zh="空的一部分（lse 为 −inf）不改变任何东西，不论在哪一边。",
)
def test_an_empty_part_changes_nothing(student, draw):
    (o1, lse1), (o2, lse2) = partial(draw, 3), partial(draw, 3)
    lse1[0, 1], lse2[1, :3] = -torch.inf, -torch.inf
    o1[0, 1], o2[1, :3] = 0.0, 0.0
    matches(student, reference.merge_partial, o1, lse1, o2, lse2)
    matches(student, reference.merge_partial, o2, lse2, o1, lse1)


@promise(
    "merge_partial",
    en="Two empty parts make an empty one: output 0 and lse −inf.",
    zh="两部分都空，合起来还是空：输出 0，lse 为 −inf。",
)
def test_two_empty_parts(student, draw):
    (o1, lse1), (o2, lse2) = partial(draw, 3), partial(draw, 3)
    o1[2], o2[2], lse1[2], lse2[2] = 0.0, 0.0, -torch.inf, -torch.inf
    matches(student, reference.merge_partial, o1, lse1, o2, lse2)


@promise(
    "merge_partial",
    en="Large and very negative log-sum-exps neither overflow nor vanish.",
    zh="lse 很大时不上溢，很小时不消失。",
)
def test_merging_is_stable(student, draw):
    for shift in (2000.0, -2000.0):
        matches(student, reference.merge_partial, *partial(draw, 3, shift=shift), *partial(draw, 3, shift=shift))
    matches(student, reference.merge_partial, *partial(draw, 3, shift=-900.0), *partial(draw, 3, shift=900.0))


@promise(
    "merge_partial",
    en="Works with any leading axes and in float32, with right gradients; the inputs stay as they were.",
    zh="任意个批次轴，float32，梯度正确；输入保持原样。",
)
def test_merging_in_general(student, draw):
    left_alone(student, reference.merge_partial, *partial(draw), *partial(draw))
    many = [*partial(draw, 2, 3), *partial(draw, 2, 3)]
    cotangents = (draw(2, 3, 5, 4), draw(2, 3, 5))
    gradients_match(student, reference.merge_partial, *many, wrt=(0, 1, 2, 3), cotangents=cotangents)
    matches(student, reference.merge_partial, *(x.float() for x in many))


# flash_forward


def drawn(draw, *lead, queries=7, keys=11, d=4, e=6, dtype=torch.float64):
    """q, k, v with pairwise distinct sizes; √d is a whole number, because many people compute it in float32."""
    shapes = (queries, d), (keys, d), (keys, e)
    return tuple(draw(*lead, *shape, dtype=dtype) for shape in shapes)


def hides(queries, keys, causal=False, window=None):
    """(queries, keys): True where a query may not look."""
    ahead = torch.arange(keys) - torch.arange(queries)[:, None] - (keys - queries)
    hidden = (ahead > 0) & torch.tensor(causal)
    return hidden if window is None else hidden | (ahead.abs() > window)


def flash_forward(q, k, v, block=64, causal=False, window=None):
    """Plain attention and its lse, from the whole table."""
    hidden = hides(q.shape[-2], k.shape[-2], causal, window)
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, -1).masked_fill(hidden, 0.0) @ v, torch.logsumexp(scores, -1)


@promise(
    "flash_forward",
    en="Output and lse are those of plain attention, exactly, whatever the block size.",
    zh="不论块多大，输出和 lse 都与普通的注意力完全一致。",
    weight=2,
)
def test_it_is_exact_at_any_block(student, draw):
    q, k, v = drawn(draw, 2, queries=8, keys=12)
    for block in (4, 3, 16):
        matches(student, flash_forward, q, k, v, block)
    matches(student, flash_forward, *drawn(draw, queries=3, keys=5), 1)


@promise("flash_forward", ANY_LENGTH)
def test_lengths_that_are_no_multiple(student, draw):
    for queries, keys, block in ((7, 11, 5), (8, 11, 4), (7, 12, 3)):
        matches(student, flash_forward, *drawn(draw, 2, queries=queries, keys=keys), block)
    matches(student, flash_forward, *drawn(draw, queries=66, keys=70))


@promise(
    "flash_forward",
    en="`causal` hides the future by position in the sequence, not in the tile.",
    zh="`causal` 按序列中的位置遮住未来，而不是按块内的位置。",
)
def test_causal(student, draw):
    for n, block in ((11, 4), (9, 3), (5, 8)):
        matches(student, flash_forward, *drawn(draw, 2, queries=n, keys=n), block, True)


@promise(
    "flash_forward",
    en="With more keys than queries, `causal` is aligned to the lower right.",
    zh="键比查询多时，`causal` 对齐右下角。",
)
def test_causal_with_more_keys(student, draw):
    matches(student, flash_forward, *drawn(draw, 2, queries=5, keys=12), 3, causal=True)
    matches(student, flash_forward, *drawn(draw, 2, queries=1, keys=9), 4, causal=True)


@promise(
    "flash_forward",
    en="A query that may look nowhere gets output 0 and lse −inf.",
    zh="哪里都不许看的查询，输出为 0，lse 为 −inf。",
)
def test_empty_rows(student, draw):
    for block in (3, 4, 16):
        matches(student, flash_forward, *drawn(draw, 2, queries=12, keys=7), block, causal=True)
    matches(student, flash_forward, *drawn(draw, 2, queries=12, keys=5), 3, window=2)


@promise(
    "flash_forward",
    en="`window` allows keys at most that far away, on both sides, with the offset Lk − Lq included.",
    zh="`window` 允许相距不超过它的键，两侧都算，并计入 Lk − Lq。",
)
def test_window(student, draw):
    for window in (2, 1, 0):
        matches(student, flash_forward, *drawn(draw, 2, queries=13, keys=13), 5, window=window)
    matches(student, flash_forward, *drawn(draw, 2, queries=9, keys=14), 4, False, 3)


@promise(
    "flash_forward",
    en="With `window` and `causal` together, both must allow a key.",
    zh="`window` 和 `causal` 同时给出时，两者都允许才可以看。",
)
def test_window_and_causal(student, draw):
    matches(student, flash_forward, *drawn(draw, 2, queries=13, keys=13), 4, True, 3)
    matches(student, flash_forward, *drawn(draw, 2, queries=6, keys=13), 5, causal=True, window=2)


@promise(
    "flash_forward",
    en="Large scores do not overflow and very negative ones do not vanish.",
    zh="分数很大也不上溢，很小也不消失。",
)
def test_extreme_scores(student, draw):
    q, k, v = drawn(draw, 2)
    for sign in (1.0, -1.0):
        matches(student, flash_forward, q + 40.0, k + sign * 40.0, v, 4)
    rising = torch.arange(11, dtype=torch.float64)[:, None]
    matches(student, flash_forward, q + 40.0, k + 4 * rising, v, 4)


@promise("flash_forward", LOW_PRECISION_AXES_AND_INPUTS)
def test_forward_in_general(student, draw):
    matches(student, flash_forward, *drawn(draw), 5)
    left_alone(student, flash_forward, *drawn(draw, 2, 3, dtype=torch.float32), 5, True)
    matches(student, reference.flash_forward, *drawn(draw, 2, dtype=torch.bfloat16), 5)


def long(draw, n, **more):
    return drawn(draw, queries=n, keys=n, **more)


@promise(
    "flash_forward",
    en="With a fixed block size the largest tensor grows as n: there is no n × n table.",
    zh="块大小固定时，最大的张量按 n 增长：没有 n × n 的表。",
)
def test_no_square_tensor(student, draw):
    matches(student, flash_forward, *long(draw, 7), 4)
    grows_at_most(student, "flash_forward", lambda n: (*long(draw, n), 20), lengths=LENGTHS, power=1.0, what="largest")


@promise(
    "flash_forward",
    en="The table is not kept in tiles or outside PyTorch either: the memory held at once grows as n.",
    zh="表也没有拆成小块留着，也没有藏到 PyTorch 之外：同时占用的内存按 n 增长。",
)
def test_no_square_in_pieces(student, draw):
    matches(student, flash_forward, *long(draw, 7), 4)
    grows_at_most(student, "flash_forward", lambda n: (*long(draw, n), 20), lengths=LENGTHS, power=1.0, what="live")
    # an n × n table would take 10 MB
    fits_in(student, "flash_forward", *long(draw, 1600, dtype=torch.float32), 320, megabytes=6)


def tiled_both_ways(student, name, q, k, v, *rest) -> None:
    """A strip of n × block is larger than twice v; a tile is not, even with an extra axis for d."""
    largest, enough = student.measure(name, q, k, v, *rest).get("largest", 0), 2 * v.numel()
    require(
        largest <= enough,
        f"{name}: the largest tensor has {largest} elements; tiles of queries and keys need no more than {enough}",
        f"{name}：最大的张量有 {largest} 个元素；查询和键都分块时，不需要超过 {enough} 个",
    )


@promise(
    "flash_forward",
    en="Queries and keys are both cut into tiles: no strip of n × block either.",
    zh="查询和键都要分块：连 n × block 的长条也没有。",
)
def test_queries_and_keys_in_tiles(student, draw):
    matches(student, flash_forward, *long(draw, 7), 4)
    tiled_both_ways(student, "flash_forward", *long(draw, 75), 15)


def share_of_tiles(queries, keys, block, causal=False, window=None) -> float:
    """The share of tiles in which some query may look at some key. Lengths are multiples of the block."""
    tiles = ~hides(queries, keys, causal, window).reshape(queries // block, block, keys // block, block)
    return float(tiles.any(3).any(1).double().mean())


def skips(student, name, q, k, v, *rest, **rules) -> None:
    """With these rules, only tiles in which some query may look at some key are computed.

    Work is counted in FLOPs, or in elements touched if the answer uses no matrix products. Work outside PyTorch cannot
    be counted and is refused.
    """
    everything, some = student.measure(name, q, k, v, *rest), student.measure(name, q, k, v, *rest, **rules)
    share = share_of_tiles(q.shape[-2], k.shape[-2], BLOCK, **rules)
    least = q.shape[-2] * k.shape[-2] * (q.shape[-1] + v.shape[-1])
    kind = "flops" if everything.get("flops", 0) >= least else "elements"
    done, without = some.get(kind, 0), everything.get(kind, 0)
    require(
        without >= least,
        f"{name}: the products are not made in PyTorch, so the work cannot be counted",
        f"{name}：乘积不是在 PyTorch 里算的，无法计数",
    )
    said = ", ".join(f"{key}={value}" for key, value in rules.items())
    require(
        done <= SPARE * share * without,
        f"{name}: {said} takes {done / without:.0%} of the work; only {share:.0%} of the tiles hold anything to see",
        f"{name}：{said} 时仍做了 {done / without:.0%} 的运算；只有 {share:.0%} 的块里有可看的内容",
    )


@promise("flash_forward", HIDDEN_TILES_ARE_SKIPPED)
def test_tiles_of_the_future_are_skipped(student, draw):
    matches(student, flash_forward, *long(draw, 7), 4, True)
    for queries, keys in ((32, 32), (24, 32)):
        skips(student, "flash_forward", *drawn(draw, queries=queries, keys=keys, d=64, e=36), BLOCK, causal=True)


@promise(
    "flash_forward",
    en="With `window`, alone or with `causal`, tiles in which no query may look at any key are not computed.",
    zh="给出 `window` 时，不论有没有 `causal`，任何查询都不许看的块不参与计算。",
)
def test_tiles_beyond_the_window_are_skipped(student, draw):
    matches(student, flash_forward, *long(draw, 7), 4, window=2)
    for causal in (False, True):
        skips(student, "flash_forward", *long(draw, 32, d=64, e=36), BLOCK, causal=causal, window=8)


# flash_backward


def task(draw, *lead, queries=7, keys=11, d=4, e=6, block=5, causal=False, dtype=torch.float64):
    """The arguments of flash_backward, with the output and the lse of a right forward pass."""
    q, k, v = drawn(draw, *lead, queries=queries, keys=keys, d=d, e=e, dtype=dtype)
    out, lse = reference.flash_forward(q, k, v, block, causal)
    return q, k, v, out, lse, draw(*lead, queries, e, dtype=dtype), block, causal


def load(draw, n, block, dtype=torch.float64):
    """The same for counting; there the saved tensors may hold any numbers."""
    saved = draw(n, 6, dtype=dtype), draw(n, dtype=dtype) + 9.0, draw(n, 6, dtype=dtype)
    return *drawn(draw, queries=n, keys=n, dtype=dtype), *saved, block


def flash_backward(q, k, v, out, lse, dout, block=64, causal=False):
    """What autograd gives through the whole table."""
    return vjp(flash_forward, (q, k, v, block, causal), {}, (0, 1, 2), (dout, None))


@promise(
    "flash_backward",
    en="The three gradients are those of autograd through plain attention.",
    zh="三个梯度都与对普通注意力自动求导的结果相同。",
    weight=2,
)
def test_the_gradients_are_those_of_autograd(student, draw):
    matches(student, flash_backward, *task(draw, 2, queries=8, keys=12, block=4))
    matches(student, flash_backward, *task(draw, 2, queries=6, keys=10, block=16))


@promise(
    "flash_backward",
    en="The block size changes nothing, not even a size of 1.",
    zh="块的大小不影响结果，哪怕是 1。",
)
def test_backward_at_any_block(student, draw):
    arguments = task(draw, 2, queries=8, keys=12)[:6]
    for block in (4, 3):
        matches(student, flash_backward, *arguments, block)
    matches(student, flash_backward, *arguments)
    matches(student, flash_backward, *task(draw, queries=3, keys=5)[:6], 1)


@promise("flash_backward", ANY_LENGTH)
def test_backward_at_odd_lengths(student, draw):
    for queries, keys, block in ((7, 11, 5), (8, 11, 4), (7, 12, 3)):
        matches(student, flash_backward, *task(draw, 2, queries=queries, keys=keys, block=block))


@promise(
    "flash_backward",
    en="With `causal`, no gradient flows from an output to later keys and values.",
    zh="`causal` 时，输出的梯度不会流到它之后的键和值。",
)
def test_causal_gradients(student, draw):
    for n, block in ((11, 4), (9, 3)):
        matches(student, flash_backward, *task(draw, 2, queries=n, keys=n, block=block, causal=True))


@promise(
    "flash_backward",
    en="`causal` is aligned to the lower right; a query that may look nowhere gives and gets no gradient.",
    zh="`causal` 对齐右下角；哪里都不许看的查询，既不给出也不得到梯度。",
)
def test_causal_gradients_of_unequal_lengths(student, draw):
    matches(student, flash_backward, *task(draw, 2, queries=5, keys=12, block=3, causal=True))
    matches(student, flash_backward, *task(draw, 2, queries=12, keys=7, block=4, causal=True))


@promise(
    "flash_backward",
    en="Large scores do not overflow, because the weights come from scores minus lse.",
    zh="分数很大也不上溢，因为权重由分数减去 lse 得来。",
)
def test_backward_of_extreme_scores(student, draw):
    q, k, v, *_, dout, block, causal = task(draw, 2)
    for sign in (1.0, -1.0):
        far_q, far_k = q + 40.0, k + sign * 40.0
        arguments = far_q, far_k, v, *reference.flash_forward(far_q, far_k, v), dout, block, causal
        matches(student, reference.flash_backward, *arguments)


@promise("flash_backward", LOW_PRECISION_AXES_AND_INPUTS)
def test_backward_in_general(student, draw):
    matches(student, flash_backward, *task(draw))
    left_alone(student, flash_backward, *task(draw, 2, 3, dtype=torch.float32, causal=True))
    matches(student, reference.flash_backward, *task(draw, 2, dtype=torch.bfloat16))


@promise(
    "flash_backward",
    en="With a fixed block size the largest tensor grows as n, and there is no strip of n × block.",
    zh="块大小固定时，最大的张量按 n 增长，也没有 n × block 的长条。",
)
def test_no_square_tensor_on_the_way_back(student, draw):
    matches(student, flash_backward, *task(draw, queries=7, keys=7))
    grows_at_most(
        student,
        "flash_backward",
        lambda n: load(draw, n, 20),
        lengths=LENGTHS,
        power=1.0,
        what="largest",
    )
    tiled_both_ways(student, "flash_backward", *load(draw, 75, 15))


@promise(
    "flash_backward",
    en="The weights are computed again and not kept: the memory held at once grows as n.",
    zh="权重是重新计算的，并不保存：同时占用的内存按 n 增长。",
)
def test_no_square_in_pieces_on_the_way_back(student, draw):
    matches(student, flash_backward, *task(draw, queries=7, keys=7))
    grows_at_most(
        student,
        "flash_backward",
        lambda n: load(draw, n, 20),
        lengths=LENGTHS,
        power=1.0,
        what="live",
    )
    fits_in(student, "flash_backward", *load(draw, 1600, 320, torch.float32), megabytes=6)


@promise("flash_backward", HIDDEN_TILES_ARE_SKIPPED)
def test_tiles_of_the_future_are_skipped_on_the_way_back(student, draw):
    matches(student, flash_backward, *task(draw, queries=7, keys=7, causal=True))
    for queries, keys in ((32, 32), (24, 32)):
        *args, _ = task(draw, queries=queries, keys=keys, d=64, e=36, block=BLOCK, causal=True)
        skips(student, "flash_backward", *args, causal=True)
