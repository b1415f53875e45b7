"""Chapter 16: sums that forget to shrink, tiles that are kept, and gradients that lose a term."""

import numpy as np
import torch

from autograder.reference import ch16_flash as right

from . import mistake

NOWHERE = -torch.inf

# online_softmax


def _online(x, block, start=NOWHERE, shrink=lambda old, new: (old - new).exp(), end=None, guard=right._finite):
    """The running maximum and the running sum, with steps that can be replaced by wrong ones."""
    top = torch.full_like(x[..., 0], start)
    total = torch.zeros_like(top)
    for part in x[..., :end].split(block, -1):
        higher = torch.maximum(top, part.amax(-1))
        total = total * shrink(top, guard(higher)) + (part - guard(higher)[..., None]).exp().sum(-1)
        top = higher
    return top, total


def _weights(x, top, total):
    return (x - right._finite(top)[..., None]).exp() / right._positive(total)[..., None]


@mistake(
    "online_softmax",
    en="The whole row is reduced at once. Right, but not online: read it block by block.",
    zh="一次就归约了整行。结果没错，但不是在线算法：应当一块一块地读。",
)
def reduces_the_whole_row(x, block):
    return torch.softmax(x, -1).nan_to_num(0.0)


@mistake(
    "online_softmax",
    en="When the maximum rises, the old sum must shrink by exp(old − new). It was not rescaled.",
    zh="最大值变大时，旧的和要乘以 exp(旧 − 新) 来缩小。这里没有缩放。",
)
def does_not_rescale_the_sum(x, block):
    return _weights(x, *_online(x, block, shrink=lambda old, new: 1.0))


@mistake(
    "online_softmax",
    en="The factor is upside down: exp(old − new), which is at most 1, not exp(new − old).",
    zh="缩放因子颠倒了：应当是不超过 1 的 exp(旧 − 新)，而不是 exp(新 − 旧)。",
)
def rescales_the_wrong_way(x, block):
    def grow(old, new):
        return torch.where(old == NOWHERE, 0.0, (new - old).exp())

    return _weights(x, *_online(x, block, shrink=grow))


@mistake(
    "online_softmax",
    en="The running maximum starts at 0. Where all scores are very negative, every exponential vanishes. Start at −inf.",
    zh="最大值从 0 开始。所有分数都很小时，指数全都变成 0。应当从 −inf 开始。",
)
def starts_the_maximum_at_zero(x, block):
    return _weights(x, *_online(x, block, start=0.0))


@mistake(
    "online_softmax",
    en="No maximum is subtracted: exp overflows on large scores.",
    zh="没有减去最大值：分数一大，exp 就上溢。",
)
def subtracts_no_maximum(x, block):
    total = sum(part.exp().sum(-1) for part in x.split(block, -1))
    return x.exp() / right._positive(total)[..., None]


@mistake(
    "online_softmax",
    en="Each block is normalised on its own: the row sums to the number of blocks. There is one sum for the whole row.",
    zh="每块各自归一化：整行之和成了块数。整行只有一个总和。",
)
def normalises_each_block(x, block):
    return torch.cat([right.online_softmax(part, block) for part in x.split(block, -1)], -1)


@mistake(
    "online_softmax",
    en="The last, shorter block is left out of the sum.",
    zh="最后不满的一块没有算进总和。",
)
def drops_the_tail(x, block):
    whole = max(x.shape[-1] // block * block, min(block, x.shape[-1]))
    return _weights(x, *_online(x, block, end=whole))


@mistake(
    "online_softmax",
    en="A first block of −inf only makes −inf − (−inf), which is NaN, and NaN stays. Guard the maximum while it is −inf.",
    zh="第一块全是 −inf 时出现 −inf − (−inf)，即 NaN，以后一直是 NaN。最大值还是 −inf 时要特别处理。",
)
def fails_on_an_empty_first_block(x, block):
    weights = _weights(x, *_online(x, block, guard=lambda top: top))
    return torch.where((x == NOWHERE).all(-1, keepdim=True), 0.0, weights)


@mistake(
    "online_softmax",
    en="A row of nothing but −inf is 0/0, NaN. It must give zeros.",
    zh="整行都是 −inf 时成了 0/0，即 NaN。应当给出全零。",
)
def gives_nan_for_an_empty_row(x, block):
    top, total = _online(x, block)
    return (x - right._finite(top)[..., None]).exp() / total[..., None]


# merge_partial


def _mix(o1, w1, o2, w2):
    return w1[..., None] * o1 + w2[..., None] * o2


@mistake(
    "merge_partial",
    en="The two outputs are averaged. Each counts by its share of the sum of exponentials, exp(lse).",
    zh="把两个输出取了平均。各自的分量应当按它在指数和 exp(lse) 中的份额。",
)
def takes_the_average(o1, lse1, o2, lse2):
    empty1, empty2 = (lse1 == NOWHERE)[..., None], (lse2 == NOWHERE)[..., None]
    return torch.where(empty1, o2, torch.where(empty2, o1, (o1 + o2) / 2)), torch.logaddexp(lse1, lse2)


@mistake(
    "merge_partial",
    en="The outputs are added as they are. They are averages already and must be weighted by exp(lse − new lse).",
    zh="输出直接相加了。它们已经是平均值，要先乘以 exp(lse − 新的 lse)。",
)
def adds_the_outputs(o1, lse1, o2, lse2):
    return o1 + o2, torch.logaddexp(lse1, lse2)


@mistake(
    "merge_partial",
    en="exp(lse) is taken as it stands and overflows, or vanishes. Subtract the larger one first, or use logaddexp.",
    zh="直接取 exp(lse)，会上溢，也会变成 0。请先减去较大的那个，或者用 logaddexp。",
)
def takes_bare_exponentials(o1, lse1, o2, lse2):
    w1, w2 = lse1.exp(), lse2.exp()
    total = w1 + w2
    return _mix(o1, w1, o2, w2) / right._positive(total)[..., None], total.log()


@mistake(
    "merge_partial",
    en="The outputs are right, but the logarithms were added: log a + log b is log(a·b). It must be log(a + b).",
    zh="输出没错，但是把两个对数相加了：log a + log b 是 log(a·b)。应当是 log(a + b)。",
)
def adds_the_logarithms(o1, lse1, o2, lse2):
    return right.merge_partial(o1, lse1, o2, lse2)[0], lse1 + lse2


@mistake(
    "merge_partial",
    en="The weights do not add up to 1: they are relative to the larger lse, and the division by their sum is missing.",
    zh="权重之和不是 1：它们是相对于较大的 lse 的，还缺一次除以权重之和。",
)
def forgets_to_divide_by_the_weights(o1, lse1, o2, lse2):
    top = right._finite(torch.maximum(lse1, lse2))
    return _mix(o1, (lse1 - top).exp(), o2, (lse2 - top).exp()), torch.logaddexp(lse1, lse2)


@mistake(
    "merge_partial",
    en="Where both parts are empty, −inf − (−inf) is NaN. The merged row is empty too: 0 and −inf.",
    zh="两部分都空时，−inf − (−inf) 是 NaN。合起来也是空行：0 和 −inf。",
)
def gives_nan_for_two_empty_parts(o1, lse1, o2, lse2):
    lse = torch.logaddexp(lse1, lse2)
    return _mix(o1, (lse1 - lse).exp(), o2, (lse2 - lse).exp()), lse


@mistake(
    "merge_partial",
    en="lse has one axis less than o: the weights need a last axis of size 1, `w[..., None]`.",
    zh="lse 比 o 少一个轴：权重要补上大小为 1 的最后一轴，`w[..., None]`。",
)
def forgets_the_last_axis(o1, lse1, o2, lse2):
    lse = torch.logaddexp(lse1, lse2)
    return (lse1 - lse).exp() * o1 + (lse2 - lse).exp() * o2, lse


# flash_forward


def _scores(q, k, causal=False, window=None, offset=None, scale=None):
    """The whole table, for mistakes that are not about its size."""
    offset = k.shape[-2] - q.shape[-2] if offset is None else offset
    ahead = torch.arange(k.shape[-2]) - torch.arange(q.shape[-2])[:, None] - offset
    hidden = (ahead > 0) & torch.tensor(bool(causal))
    if window is not None:
        hidden = hidden | (ahead.abs() > window)
    return (q @ k.mT / (scale or q.shape[-1] ** 0.5)).masked_fill(hidden, NOWHERE)


def _whole(scores, v):
    return torch.softmax(scores, -1).nan_to_num(0.0) @ v, scores.logsumexp(-1)


def _tiled(
    q, k, v, block, causal=False, window=None, start=NOWHERE, shrink_sum=None, shrink_mixed=None, common=True,
    finite=right._finite, positive=right._positive, needed=None, hidden=None, keep=None, lse=None, divide=True, size=None,
):  # fmt: skip
    """The tiled forward pass, with steps that can be replaced by wrong ones."""

    def shrinks(old, new):
        return (old - new).exp()

    outs, lses, queries, keys = [], [], q.shape[-2], k.shape[-2]
    high, wide = size or (block, block)
    for i in range(0, queries, high):
        rows = q[..., i : i + high, :] / q.shape[-1] ** 0.5
        top = torch.full_like(rows[..., 0], start)
        total, mixed = torch.zeros_like(top), rows.new_zeros(*rows.shape[:-1], v.shape[-1])
        for j in range(0, keys, wide):
            if not (needed or right._some_may_look)(i, j, block, queries, keys, causal, window):
                continue
            place, where = torch.arange(i, min(i + high, queries)), torch.arange(j, min(j + wide, keys))
            ahead = where - place[:, None] - (keys - queries)
            blind = hidden(place, where, i, j) if hidden else (ahead > 0) & torch.tensor(bool(causal))
            if window is not None:
                blind = blind | (ahead.abs() > window)
            scores = (rows @ k[..., j : j + wide, :].mT).masked_fill(blind, NOWHERE)
            higher = torch.maximum(top, scores.amax(-1))
            peak = finite(higher if common else scores.amax(-1))
            votes = (scores - peak[..., None]).exp()
            total = total * (shrink_sum or shrinks)(top, finite(higher)) + votes.sum(-1)
            mixed = mixed * (shrink_mixed or shrinks)(top, finite(higher))[..., None] + votes @ v[..., j : j + wide, :]
            top = higher
            if keep is not None:
                keep.append(votes)
        outs.append(mixed / positive(total)[..., None] if divide else mixed)
        lses.append(lse(top, total) if lse else top + total.log())
    return torch.cat(outs, -2), torch.cat(lses, -1)


def _stay(old, new):
    return torch.ones_like(old)


def _grow(old, new):
    return torch.where(old == NOWHERE, 0.0, (new - old).exp())


@mistake(
    "flash_forward",
    en="The whole n × n table of scores is made. The result is right, and nothing is saved.",
    zh="算出了整张 n × n 的分数表。结果没错，却什么也没省。",
)
def makes_the_whole_table(q, k, v, block=64, causal=False, window=None):
    return _whole(_scores(q, k, causal, window), v)


@mistake(
    "flash_forward",
    en="The work is done in tiles, but every tile is kept: together they are the n × n table.",
    zh="计算是分块的，可是每一块都留着没放：加起来就是 n × n 的表。",
)
def keeps_every_tile(q, k, v, block=64, causal=False, window=None):
    kept = []
    return _tiled(q, k, v, block, causal, window, keep=kept)


@mistake(
    "flash_forward",
    en="The table is made in NumPy: it takes n × n memory there all the same.",
    zh="表是在 NumPy 里算的：照样占 n × n 的内存。",
)
def hides_the_table_in_numpy(q, k, v, block=64, causal=False, window=None):
    a, b, c = (x.detach().to(torch.promote_types(q.dtype, torch.float32)).numpy() for x in (q, k, v))
    scores = a @ b.swapaxes(-1, -2) / a.shape[-1] ** 0.5
    ahead = np.arange(k.shape[-2]) - np.arange(q.shape[-2])[:, None] - (k.shape[-2] - q.shape[-2])
    hidden = (ahead > 0) & bool(causal) if window is None else (ahead > 0) & bool(causal) | (abs(ahead) > window)
    scores[..., hidden] = -np.inf
    top = scores.max(-1, keepdims=True)
    top[top == -np.inf] = 0.0
    votes = np.exp(scores - top)
    total = votes.sum(-1, keepdims=True)
    out, total = torch.from_numpy(votes @ c / np.where(total == 0, 1.0, total)), torch.from_numpy(total[..., 0])
    return out.to(q.dtype), (total.log() + torch.from_numpy(top[..., 0])).to(q.dtype)


@mistake(
    "flash_forward",
    en="Only the keys are cut into blocks: all queries at once make strips of n × block, and no tile is ever skipped.",
    zh="只把键分了块：所有查询一起上，得到 n × block 的长条，也就跳不过任何一块。",
)
def cuts_only_the_keys(q, k, v, block=64, causal=False, window=None):
    return _tiled(q, k, v, block, causal, window, size=(q.shape[-2], block), needed=lambda *tile: True)


@mistake(
    "flash_forward",
    en="Only the queries are cut into blocks: each meets a strip of all its keys. Cut the keys as well.",
    zh="只把查询分了块：每块面对的是它所有键的长条。键也要分块。",
)
def cuts_only_the_queries(q, k, v, block=64, causal=False, window=None):
    outs, lses, keys, shift = [], [], k.shape[-2], k.shape[-2] - q.shape[-2]
    for i in range(0, q.shape[-2], block):
        rows = q[..., i : i + block, :]
        first, last = i + shift, i + shift + rows.shape[-2] - 1
        low = 0 if window is None else min(max(first - window, 0) // block * block, keys)
        high = keys if window is None else last + window + 1
        high = max(min(high, last + 1) if causal else high, low + 1)
        near = slice(low, min(high, keys))
        out, lse = _whole(_scores(rows, k[..., near, :], causal, window, offset=first - low), v[..., near, :])
        outs.append(out)
        lses.append(lse)
    return torch.cat(outs, -2), torch.cat(lses, -1)


@mistake(
    "flash_forward",
    en="Every tile is computed and then masked, also those in which no query may look at any key. Skip them.",
    zh="所有的块都算了再遮，连任何查询都不许看的块也算。应当跳过它们。",
)
def skips_no_tile(q, k, v, block=64, causal=False, window=None):
    return _tiled(q, k, v, block, causal, window, needed=lambda *tile: True)


@mistake(
    "flash_forward",
    en="When the maximum rises, the output collected so far is not rescaled.",
    zh="最大值变大时，已经累积的输出没有缩放。",
)
def does_not_rescale_the_output(q, k, v, block=64, causal=False, window=None):
    return _tiled(q, k, v, block, causal, window, shrink_mixed=_stay)


@mistake(
    "flash_forward",
    en="When the maximum rises, the running sum is not rescaled.",
    zh="最大值变大时，累积的和没有缩放。",
)
def does_not_rescale_the_sum_of_votes(q, k, v, block=64, causal=False, window=None):
    return _tiled(q, k, v, block, causal, window, shrink_sum=_stay)


@mistake(
    "flash_forward",
    en="The factor is upside down: the old output and sum must shrink by exp(old − new), not grow by exp(new − old).",
    zh="缩放因子颠倒了：旧的输出和旧的和应当乘以 exp(旧 − 新) 缩小，而不是乘以 exp(新 − 旧) 放大。",
)
def grows_where_it_should_shrink(q, k, v, block=64, causal=False, window=None):
    return _tiled(q, k, v, block, causal, window, shrink_sum=_grow, shrink_mixed=_grow)


@mistake(
    "flash_forward",
    en="Each tile is divided by its own sum and the results are added. Divide once, at the end, or merge by lse.",
    zh="每块先除以自己的和，再把结果相加。应当最后只除一次，或者按 lse 合并。",
)
def normalises_each_tile(q, k, v, block=64, causal=False, window=None):
    parts = [
        _whole(_scores(q, k[..., j : j + block, :], causal, window, offset=k.shape[-2] - q.shape[-2] - j), part)[0]
        for j, part in zip(range(0, k.shape[-2], block), v.split(block, -2), strict=True)
    ]
    return sum(parts), _tiled(q, k, v, block, causal, window)[1]


@mistake(
    "flash_forward",
    en="No maximum is subtracted: exp overflows on large scores.",
    zh="没有减去最大值：分数一大，exp 就上溢。",
)
def subtracts_no_maximum_in_the_tiles(q, k, v, block=64, causal=False, window=None):
    votes = _scores(q, k, causal, window).exp()
    total = votes.sum(-1)
    return votes @ v / right._positive(total)[..., None], total.log()


@mistake(
    "flash_forward",
    en="Each tile uses its own maximum, so the tiles are on different scales. Use the running maximum.",
    zh="每块减的是自己的最大值，各块的尺度就不一样了。应当用累积的最大值。",
)
def uses_the_maximum_of_each_tile(q, k, v, block=64, causal=False, window=None):
    return _tiled(q, k, v, block, causal, window, common=False)


@mistake(
    "flash_forward",
    en="The running maximum starts at 0: where all scores are very negative, every exponential vanishes. Start at −inf.",
    zh="最大值从 0 开始：所有分数都很小时，每一票都变成 0。应当从 −inf 开始。",
)
def starts_the_row_maximum_at_zero(q, k, v, block=64, causal=False, window=None):
    return _tiled(q, k, v, block, causal, window, start=0.0)


@mistake(
    "flash_forward",
    en="The keys of the last, shorter tile are left out.",
    zh="最后不满的一块里的键被丢掉了。",
)
def drops_the_last_keys(q, k, v, block=64, causal=False, window=None):
    whole = max(k.shape[-2] // block * block, min(block, k.shape[-2]))
    scores = _scores(q, k, causal, window)[..., :whole]
    return _whole(scores, v[..., :whole, :])


@mistake(
    "flash_forward",
    en="The output is not divided by the sum at the end.",
    zh="最后没有把输出除以总和。",
)
def forgets_the_last_division(q, k, v, block=64, causal=False, window=None):
    return _tiled(q, k, v, block, causal, window, divide=False)


@mistake(
    "flash_forward",
    en="The causal mask counts from the corner of the tile. Add the start of the tile: positions count in the sequence.",
    zh="因果掩码从块的角上数起。要加上块的起点：位置是按整个序列数的。",
)
def counts_places_inside_the_tile(q, k, v, block=64, causal=False, window=None):
    def hidden(place, where, i, j):
        return (where - j > (place - i)[:, None]) & torch.tensor(bool(causal))

    return _tiled(q, k, v, block, causal, window, hidden=hidden)


@mistake(
    "flash_forward",
    en="A row that sees nothing in its first tile makes −inf − (−inf), NaN, and NaN stays. Guard the maximum while it is −inf.",
    zh="某一行在第一块里什么也看不到时，出现 −inf − (−inf)，即 NaN，以后一直是 NaN。最大值还是 −inf 时要特别处理。",
)
def gives_nan_where_the_first_tile_is_hidden(q, k, v, block=64, causal=False, window=None):
    out, lse = _tiled(q, k, v, block, causal, window, finite=lambda top: top)
    empty = _scores(q[..., :1] * 0, k[..., :1] * 0, causal, window).amax(-1) == NOWHERE
    return out.masked_fill(empty[..., None], 0.0), lse.masked_fill(empty, NOWHERE)


@mistake(
    "flash_forward",
    en="A query that may look nowhere is 0/0, NaN. Its output is 0 and its lse is −inf.",
    zh="哪里都不许看的查询成了 0/0，即 NaN。它的输出应为 0，lse 应为 −inf。",
)
def gives_nan_for_a_blind_query(q, k, v, block=64, causal=False, window=None):
    return _tiled(q, k, v, block, causal, window, positive=lambda total: total)


@mistake(
    "flash_forward",
    en="lse lacks the maximum: it is max + log(sum), not log(sum).",
    zh="lse 里少了最大值：应当是 最大值 + log(和)，不是 log(和)。",
)
def forgets_the_maximum_in_lse(q, k, v, block=64, causal=False, window=None):
    return _tiled(q, k, v, block, causal, window, lse=lambda top, total: total.log())


@mistake(
    "flash_forward",
    en="`causal` is aligned to the upper left. With Lq ≠ Lk query i is at position i + Lk − Lq.",
    zh="`causal` 对齐了左上角。Lq ≠ Lk 时，查询 i 的位置是 i + Lk − Lq。",
)
def aligns_to_the_upper_left(q, k, v, block=64, causal=False, window=None):
    scores = _scores(q, k, causal, offset=0)
    return _whole(scores.masked_fill(_scores(q, k, False, window) == NOWHERE, NOWHERE), v)


@mistake(
    "flash_forward",
    en="The window is one too narrow: a distance of exactly `window` is allowed (≤, not <).",
    zh="窗口窄了一格：距离恰好为 `window` 也是允许的（≤，不是 <）。",
)
def leaves_out_the_edge_of_the_window(q, k, v, block=64, causal=False, window=None):
    return _whole(_scores(q, k, causal, None if window is None else window - 1), v)


@mistake(
    "flash_forward",
    en="`window` and `causal` were joined by OR. A key must be allowed by both.",
    zh="`window` 和 `causal` 用「或」连接了。两者都允许才可以看。",
)
def allows_what_either_allows(q, k, v, block=64, causal=False, window=None):
    if not causal or window is None:
        return _tiled(q, k, v, block, causal, window)
    hidden = (_scores(q, k, True) == NOWHERE) & (_scores(q, k, False, window) == NOWHERE)
    return _whole(_scores(q, k).masked_fill(hidden, NOWHERE), v)


@mistake("flash_forward", en="The scores are not divided by √d.", zh="分数没有除以 √d。")
def forgets_the_scale(q, k, v, block=64, causal=False, window=None):
    return _tiled(q * q.shape[-1] ** 0.5, k, v, block, causal, window)


# flash_backward


def _back(
    q, k, v, out, lse, dout, block, causal=False, shared=None, scale_q=True, weigh=None, needed=None,
    hide=True, keep=None,
):  # fmt: skip
    """The tiled backward pass, with steps that can be replaced by wrong ones."""
    scale = q.shape[-1] ** -0.5
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    shared = (dout * out).sum(-1, keepdim=True) if shared is None else shared
    queries, keys = q.shape[-2], k.shape[-2]
    for i in range(0, queries, block):
        for j in range(0, keys, block):
            if not (needed or right._some_may_look)(i, j, block, queries, keys, causal, None):
                continue
            rows, columns = slice(i, i + block), slice(j, j + block)
            scores = q[..., rows, :] @ k[..., columns, :].mT * scale
            if causal and hide:
                ahead = torch.arange(keys)[columns] - torch.arange(queries)[rows, None] - (keys - queries)
                scores = scores.masked_fill(ahead > 0, NOWHERE)
            weights = (weigh or _by_lse)(scores, lse[..., rows])
            dweights = dout[..., rows, :] @ v[..., columns, :].mT
            dscores = weights * (dweights - shared[..., rows, :])
            dv[..., columns, :] += weights.mT @ dout[..., rows, :]
            dq[..., rows, :] += dscores @ k[..., columns, :] * (scale if scale_q else 1.0)
            dk[..., columns, :] += dscores.mT @ q[..., rows, :] * scale
            if keep is not None:
                keep.append(weights)
    return dq, dk, dv


def _by_lse(scores, lse):
    return (scores - right._finite(lse)[..., None]).exp()


def _formula(q, k, v, out, dout, causal):
    """The gradients by formula from the whole table, and the table."""
    weights = torch.softmax(_scores(q, k, causal), -1).nan_to_num(0.0)
    dscores = weights * (dout @ v.mT - (dout * out).sum(-1, keepdim=True)) / q.shape[-1] ** 0.5
    return dscores @ k, dscores.mT @ q, weights.mT @ dout


@mistake(
    "flash_backward",
    en="The whole n × n table is made again. The gradients are right, and nothing is saved.",
    zh="又算出了整张 n × n 的表。梯度没错，却什么也没省。",
)
def makes_the_whole_table_again(q, k, v, out, lse, dout, block=64, causal=False):
    return _formula(q, k, v, out, dout, causal)


@mistake(
    "flash_backward",
    en="The work is done in tiles, but every tile of weights is kept: together they are the n × n table.",
    zh="计算是分块的，可是每一块权重都留着没放：加起来就是 n × n 的表。",
)
def keeps_every_tile_of_weights(q, k, v, out, lse, dout, block=64, causal=False):
    return _back(q, k, v, out, lse, dout, block, causal, keep=[])


@mistake(
    "flash_backward",
    en="Every tile is computed, also those in which no query may look at any key. Skip them.",
    zh="所有的块都算了，连任何查询都不许看的块也算。应当跳过它们。",
)
def skips_no_tile_on_the_way_back(q, k, v, out, lse, dout, block=64, causal=False):
    return _back(q, k, v, out, lse, dout, block, causal, needed=lambda *tile: True)


@mistake(
    "flash_backward",
    en="D = rowsum(dO ∘ O) is missing: softmax takes from every key of a row what it gives to one.",
    zh="少了 D = rowsum(dO ∘ O)：softmax 给一个键多少，就要从整行里扣多少。",
)
def forgets_what_the_row_shares(q, k, v, out, lse, dout, block=64, causal=False):
    return _back(q, k, v, out, lse, dout, block, causal, shared=torch.zeros_like(dout[..., :1]))


@mistake("flash_backward", en="dQ lacks its factor 1/√d.", zh="dQ 少了因子 1/√d。")
def forgets_the_scale_of_dq(q, k, v, out, lse, dout, block=64, causal=False):
    return _back(q, k, v, out, lse, dout, block, causal, scale_q=False)


@mistake(
    "flash_backward",
    en="The weights are exp(S), not normalised. They are exp(S − lse).",
    zh="权重用了没有归一化的 exp(S)。应当是 exp(S − lse)。",
)
def forgets_lse(q, k, v, out, lse, dout, block=64, causal=False):
    return _back(q, k, v, out, lse, dout, block, causal, weigh=lambda scores, lse: scores.exp())


@mistake(
    "flash_backward",
    en="Each tile is normalised by its own softmax. The weights of the whole row are exp(S − lse).",
    zh="每块各做了一次 softmax。整行的权重是 exp(S − lse)。",
)
def normalises_each_tile_again(q, k, v, out, lse, dout, block=64, causal=False):
    def weigh(scores, lse):
        return torch.softmax(scores, -1).nan_to_num(0.0)

    return _back(q, k, v, out, lse, dout, block, causal, weigh=weigh)


@mistake(
    "flash_backward",
    en="dQ of a tile is overwritten by the next key tile. Add it up: every key contributes.",
    zh="一块的 dQ 被下一块键覆盖了。应当累加：每个键都有份。",
)
def keeps_only_the_last_key_tile(q, k, v, out, lse, dout, block=64, causal=False):
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for i in range(0, q.shape[-2], block):
        rows = slice(i, i + block)
        for j in range(0, k.shape[-2], block):
            if not right._some_may_look(i, j, block, q.shape[-2], k.shape[-2], causal, None):
                continue
            columns, shift = slice(j, j + block), k.shape[-2] - q.shape[-2]
            scores = _scores(q[..., rows, :], k[..., columns, :], causal, offset=i + shift - j)
            weights = _by_lse(scores, lse[..., rows])
            shared = (dout * out).sum(-1, keepdim=True)[..., rows, :]
            ds = weights * (dout[..., rows, :] @ v[..., columns, :].mT - shared) / q.shape[-1] ** 0.5
            dq[..., rows, :] = ds @ k[..., columns, :]
            dk[..., columns, :] += ds.mT @ q[..., rows, :]
            dv[..., columns, :] += weights.mT @ dout[..., rows, :]
    return dq, dk, dv


@mistake(
    "flash_backward",
    en="`causal` is ignored when the scores are computed again: gradients flow from keys that were never seen.",
    zh="重新计算分数时忘了 `causal`：梯度从根本没看到的键流了回来。",
)
def ignores_causal(q, k, v, out, lse, dout, block=64, causal=False):
    return _back(q, k, v, out, lse, dout, block, causal, hide=False, needed=lambda *tile: True)


@mistake(
    "flash_backward",
    en="A query that may look nowhere has lse −inf, and −inf − (−inf) is NaN. It takes part in no gradient.",
    zh="哪里都不许看的查询 lse 为 −inf，而 −inf − (−inf) 是 NaN。它不参与任何梯度。",
)
def gives_nan_for_a_blind_query_again(q, k, v, out, lse, dout, block=64, causal=False):
    return _back(q, k, v, out, lse, dout, block, causal, weigh=lambda scores, lse: (scores - lse[..., None]).exp())


@mistake(
    "flash_backward",
    en="The last, shorter tile is left out: the last keys get no gradient.",
    zh="最后不满的一块漏掉了：最后几个键没有梯度。",
)
def drops_the_gradients_of_the_last_keys(q, k, v, out, lse, dout, block=64, causal=False):
    whole = max(k.shape[-2] // block * block, min(block, k.shape[-2]))

    def needed(i, j, block, queries, keys, causal, window):
        return j < whole and right._some_may_look(i, j, block, queries, keys, causal, window)

    return _back(q, k, v, out, lse, dout, block, causal, needed=needed)
