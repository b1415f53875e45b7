"""Chapter 14: wrong patterns, wrong counts of steps, and bands that are too wide, too narrow or too expensive."""

import torch

from autograder.reference import ch14_sparse as right

from . import mistake

# longformer_mask


def _band(n, low, high):
    """True where low <= j - i <= high."""
    place = torch.arange(n)
    ahead = place - place[:, None]
    return (ahead >= low) & (ahead <= high)


def _with_globals(mask, global_tokens):
    tokens = torch.as_tensor(global_tokens, dtype=torch.long)
    mask[tokens] = True
    mask[:, tokens] = True
    return mask


@mistake(
    "longformer_mask",
    en="Global attention goes one way only: the global tokens see all tokens, but no token sees them. The columns are missing.",
    zh="全局注意力只有单向：全局词元看到所有词元，却没有谁看到它们。少了那几列。",
)
def lets_global_tokens_see_but_not_be_seen(n, window, global_tokens):
    mask = _band(n, -window, window)
    mask[torch.as_tensor(global_tokens, dtype=torch.long)] = True
    return mask


@mistake(
    "longformer_mask",
    en="Global attention goes one way only: all tokens see the global tokens, but those see only their neighbours. The rows are missing.",
    zh="全局注意力只有单向：所有词元都看到全局词元，它们自己却只看到邻居。少了那几行。",
)
def lets_global_tokens_be_seen_but_not_see(n, window, global_tokens):
    return lets_global_tokens_see_but_not_be_seen(n, window, global_tokens).T.contiguous()


@mistake(
    "longformer_mask",
    en="The window is one too narrow: a distance of exactly `window` is allowed (≤, not <).",
    zh="窗口窄了一格：距离恰好为 `window` 也是允许的（≤，不是 <）。",
)
def leaves_out_the_edge_of_the_window(n, window, global_tokens):
    return _with_globals(_band(n, 1 - window, window - 1), global_tokens)


@mistake(
    "longformer_mask",
    en="`window` was taken as the whole width. Here it is the reach to each side: |i − j| ≤ window.",
    zh="把 `window` 当成了总宽度。这里它是向每一侧伸出的距离：|i − j| ≤ window。",
)
def takes_the_window_as_a_width(n, window, global_tokens):
    return right.longformer_mask(n, window // 2, global_tokens)


@mistake(
    "longformer_mask",
    en="The window wraps around: the first tokens see the last ones.",
    zh="窗口绕过了末端：最前面的词元看到了最后面的。",
)
def lets_the_window_wrap_around(n, window, global_tokens):
    place = torch.arange(n)
    apart = (place[:, None] - place).abs()
    return _with_globals(torch.minimum(apart, n - apart) <= window, global_tokens)


@mistake(
    "longformer_mask",
    en="The window looks back only. Longformer's window is symmetric; causal models cut it in half, this exercise does not.",
    zh="窗口只往回看。Longformer 的窗口是对称的；因果模型才砍掉一半，本题不砍。",
)
def looks_back_only(n, window, global_tokens):
    return _with_globals(_band(n, -window, 0), global_tokens)


@mistake("longformer_mask", en="The global tokens are ignored.", zh="忽略了全局词元。")
def ignores_the_global_tokens(n, window, global_tokens):
    return right.longformer_mask(n, window, [])


@mistake(
    "longformer_mask",
    en="A tensor of indices was put into a set: its elements are tensors, not numbers, and none is found.",
    zh="把下标张量放进了 set：里面的元素是张量而不是数，一个也查不到。",
)
def loses_a_tensor_of_indices_in_a_set(n, window, global_tokens):
    chosen = set(global_tokens)
    return right.longformer_mask(n, window, [i for i in range(n) if i in chosen])


@mistake(
    "longformer_mask",
    en="An empty list of global tokens fails: `torch.tensor([])` holds floats, which cannot be indices. Give it dtype torch.long.",
    zh="全局词元为空列表时出错：`torch.tensor([])` 是浮点型，不能当下标。请指定 dtype=torch.long。",
)
def fails_without_global_tokens(n, window, global_tokens):
    mask = _band(n, -window, window)
    mask[torch.as_tensor(global_tokens)] = True
    mask[:, torch.as_tensor(global_tokens)] = True
    return mask


@mistake(
    "longformer_mask",
    en="The mask is inverted. In this course True means may look.",
    zh="掩码反了。本课约定 True 表示「可以看」。",
)
def marks_what_is_hidden(n, window, global_tokens):
    return ~right.longformer_mask(n, window, global_tokens)


@mistake(
    "longformer_mask",
    en="The mask is made of numbers. Return dtype torch.bool.",
    zh="掩码是数字。请返回 torch.bool 类型。",
)
def returns_numbers(n, window, global_tokens):
    return right.longformer_mask(n, window, global_tokens).float()


# bigbird_mask


def _drawn(n, window, global_tokens, count, generator, avoid=None, luck=None, replace=False):
    """BigBird's mask with `count` keys per row outside `avoid`."""
    mask = right.longformer_mask(n, window, global_tokens)
    avoid = mask if avoid is None else avoid
    luck = torch.rand(n, n, generator=generator) if luck is None else luck
    luck = luck.masked_fill(avoid, 0.0) + 1e-9
    keys = (
        torch.multinomial(luck, count, replacement=replace, generator=generator)
        if replace
        else luck.topk(count).indices
    )
    further = torch.zeros_like(mask).scatter(-1, keys, True)
    further[torch.as_tensor(global_tokens, dtype=torch.long)] = False
    return mask | further


def _refuse_as_the_reference_does(function, *args):
    """Raise what the right function raises on these arguments. Its result is thrown away."""
    function(*args)


@mistake(
    "bigbird_mask",
    en="The keys are drawn from PyTorch's global generator, so every call gives another mask. Pass `generator` on to each draw.",
    zh="键是用 PyTorch 的全局生成器抽的，每次调用都得到另一个掩码。每次抽取都要把 `generator` 传进去。",
)
def draws_anew_at_each_call(n, window, global_tokens, random_per_row, generator):
    _refuse_as_the_reference_does(right.bigbird_mask, n, window, global_tokens, random_per_row, torch.Generator())
    return _drawn(n, window, global_tokens, random_per_row, None)


@mistake(
    "bigbird_mask",
    en="The draw has a seed of its own: whatever `generator` is, the mask is the same.",
    zh="抽取用了自己固定的种子：不管 `generator` 是什么，掩码都一样。",
)
def draws_with_a_seed_of_its_own(n, window, global_tokens, random_per_row, generator):
    return right.bigbird_mask(n, window, global_tokens, random_per_row, torch.Generator().manual_seed(0))


@mistake(
    "bigbird_mask",
    en="The global generator is seeded with the given one's seed: the mask is right, but all later random numbers are changed.",
    zh="用给定生成器的种子去设了全局种子：掩码没错，但之后所有的随机数都被改变了。",
)
def seeds_the_global_generator(n, window, global_tokens, random_per_row, generator):
    _refuse_as_the_reference_does(right.bigbird_mask, n, window, global_tokens, random_per_row, torch.Generator())
    torch.manual_seed(generator.initial_seed())
    return _drawn(n, window, global_tokens, random_per_row, None)


@mistake(
    "bigbird_mask",
    en="The keys are drawn with replacement: one that comes twice is one key too few. They must be distinct.",
    zh="抽取是有放回的：同一个键抽到两次，就少了一个。它们必须互不相同。",
)
def draws_the_same_key_twice(n, window, global_tokens, random_per_row, generator):
    _refuse_as_the_reference_does(right.bigbird_mask, n, window, global_tokens, random_per_row, torch.Generator())
    if random_per_row == 0:
        return right.longformer_mask(n, window, global_tokens)
    return _drawn(n, window, global_tokens, random_per_row, generator, luck=torch.ones(n, n), replace=True)


@mistake(
    "bigbird_mask",
    en="The keys are drawn from all keys, so some fall on what the row sees already. Draw among the free ones.",
    zh="键是从全部键里抽的，有些落在这一行已经看得到的位置上。应当只从空闲的键里抽。",
)
def draws_among_all_keys(n, window, global_tokens, random_per_row, generator):
    _refuse_as_the_reference_does(right.bigbird_mask, n, window, global_tokens, random_per_row, torch.Generator())
    nothing = torch.zeros(n, n, dtype=torch.bool)
    return _drawn(n, window, global_tokens, random_per_row, generator, avoid=nothing)


@mistake(
    "bigbird_mask",
    en="The draw avoids the window but not the global columns: a global key is counted twice, and the row has one too few.",
    zh="抽取时避开了窗口，却没有避开全局列：全局键算了两次，这一行就少一个。",
)
def counts_a_global_key_twice(n, window, global_tokens, random_per_row, generator):
    _refuse_as_the_reference_does(right.bigbird_mask, n, window, global_tokens, random_per_row, torch.Generator())
    avoid = right.longformer_mask(n, window, [])
    return _drawn(n, window, global_tokens, random_per_row, generator, avoid=avoid)


@mistake(
    "bigbird_mask",
    en="The random keys were made symmetric. Only the window and the global tokens are; random keys belong to their row.",
    zh="把随机键也做成了对称的。对称的只有窗口和全局词元；随机键只属于自己那一行。",
)
def makes_the_random_keys_symmetric(n, window, global_tokens, random_per_row, generator):
    mask = right.bigbird_mask(n, window, global_tokens, random_per_row, generator)
    return mask | mask.T


@mistake(
    "bigbird_mask",
    en="All rows share one draw, so some keys are seen by almost all rows and others by none. Draw for each row.",
    zh="所有行共用一次抽取：有的键几乎人人都看，有的没人看。每一行要各抽各的。",
)
def shares_one_draw_among_the_rows(n, window, global_tokens, random_per_row, generator):
    _refuse_as_the_reference_does(right.bigbird_mask, n, window, global_tokens, random_per_row, torch.Generator())
    luck = torch.rand(n, generator=generator).expand(n, n)
    return _drawn(n, window, global_tokens, random_per_row, generator, luck=luck)


@mistake(
    "bigbird_mask",
    en="Where a row has too few free keys it silently gets fewer. Raise ValueError.",
    zh="某一行空闲的键不够时，悄悄地少给了。应当抛出 ValueError。",
)
def gives_fewer_keys_without_a_word(n, window, global_tokens, random_per_row, generator):
    return _drawn(n, window, global_tokens, min(random_per_row, n), generator)


@mistake(
    "bigbird_mask",
    en="Asking for exactly all free keys is refused. Only more than there are is an error.",
    zh="恰好要走全部空闲键时也拒绝了。只有要得比剩下的多才是错误。",
)
def refuses_to_give_all_free_keys(n, window, global_tokens, random_per_row, generator):
    _refuse_as_the_reference_does(right.bigbird_mask, n, window, global_tokens, random_per_row + 1, torch.Generator())
    return right.bigbird_mask(n, window, global_tokens, random_per_row, generator)


@mistake(
    "bigbird_mask",
    en="The Longformer part lets global tokens see but not be seen: their columns are missing.",
    zh="Longformer 的部分只让全局词元看别人，别人看不到它们：少了那几列。",
)
def forgets_the_global_columns(n, window, global_tokens, random_per_row, generator):
    mask = right.bigbird_mask(n, window, global_tokens, random_per_row, generator)
    return mask & (
        lets_global_tokens_see_but_not_be_seen(n, window, global_tokens)
        | ~right.longformer_mask(n, window, global_tokens)
    )


# hops


@mistake(
    "hops",
    en="The residual is missing: where the diagonal is False a token forgets what it knew. Add the identity to the mask.",
    zh="没有算残差：对角线为 False 时，词元会忘掉已知的东西。请给掩码加上单位阵。",
)
def forgets_the_residual(mask):
    reached = torch.eye(len(mask), dtype=torch.bool)
    for steps in range(len(mask)):
        if reached.all():
            return steps
        reached = (mask.double() @ reached.double()) > 0
    return -1


@mistake(
    "hops",
    en="One step too few: looking once is 1 step, not 0.",
    zh="少算了一步：看一次就是 1 步，不是 0 步。",
)
def starts_counting_at_zero(mask):
    steps = right.hops(mask)
    return steps - 1 if steps > 0 else steps


@mistake("hops", en="A token that is never reached must give −1.", zh="有永远到不了的词元时，应当返回 −1。")
def never_gives_up(mask):
    steps = right.hops(mask)
    return len(mask) if steps < 0 else steps


@mistake(
    "hops",
    en="Gives up one step too early: a path may have n − 1 steps.",
    zh="早放弃了一步：一条路最长可以有 n − 1 步。",
)
def gives_up_too_early(mask):
    steps = right.hops(mask)
    return -1 if steps > 1 and steps == len(mask) - 1 else steps


@mistake(
    "hops",
    en="A single token has no other token to reach: 0 steps, not 1.",
    zh="只有一个词元时没有别人要到达：0 步，不是 1 步。",
)
def counts_a_step_for_one_token(mask):
    return right.hops(mask) or 1


@mistake(
    "hops",
    en="Only the way from the first token to the last was measured. Every pair counts.",
    zh="只量了从第一个词元到最后一个的路。每一对都算。",
)
def measures_first_to_last_only(mask):
    reached = torch.zeros(len(mask), dtype=torch.bool)
    reached[-1] = True
    for steps in range(len(mask)):
        if reached[0]:
            return steps
        reached = reached | mask[:, reached].any(-1)
    return -1


@mistake(
    "hops",
    en="The mask was made symmetric. Looking has a direction: that i sees j does not let j see i.",
    zh="把掩码当成了对称的。「看」有方向：i 看到 j，不等于 j 看到 i。",
)
def ignores_the_direction(mask):
    return right.hops(mask | mask.T)


@mistake(
    "hops",
    en="Squarings were counted, not steps: each squaring doubles the reach.",
    zh="数的是平方的次数，不是步数：每平方一次，能到的距离就翻倍。",
)
def counts_squarings(mask):
    steps = right.hops(mask)
    return steps if steps < 1 else 1 + (steps - 1).bit_length()


@mistake(
    "hops",
    en="The number of paths overflows: after some 80 steps it is inf, and inf × 0 is NaN. Keep only whether there is a path.",
    zh="路的条数溢出了：大约 80 步之后变成 inf，而 inf × 0 是 NaN。只需记住有没有路。",
)
def counts_paths_until_they_overflow(mask):
    step = mask.float() + torch.eye(len(mask))
    paths = torch.eye(len(mask))
    for steps in range(len(mask)):
        if (paths > 0).all():
            return steps
        paths = step @ paths
    return -1


@mistake("hops", en="Returns a tensor. Return a plain int.", zh="返回的是张量。请返回普通的 int。")
def returns_a_tensor(mask):
    return torch.tensor(right.hops(mask))


# banded_attention


def _dense(q, k, v, mask, scale=None):
    scores = q @ k.mT / (scale or q.shape[-1] ** 0.5)
    return torch.softmax(scores.masked_fill(~mask.to(q.device), -torch.inf), -1) @ v


def _near(x, window):
    """The rows around each row, zeros beyond the ends: (..., n, 2w+1, d)"""
    n = x.shape[-2]
    padded = torch.nn.functional.pad(x, (0, 0, window, window))
    place = torch.arange(n)[:, None] + torch.arange(2 * window + 1)
    return padded[..., place, :]


def _beyond(n, window):
    place = torch.arange(n)[:, None] + torch.arange(-window, window + 1)
    return (place < 0) | (place >= n)


def _scores(q, k, window):
    return (_near(k, window) @ q[..., None])[..., 0] / q.shape[-1] ** 0.5


def _mix(weights, v, window):
    return (weights[..., None, :] @ _near(v, window))[..., 0, :]


@mistake(
    "banded_attention",
    en="The whole n × n table is made and then masked. The result is right, and nothing is saved: not memory, not work.",
    zh="先算出整张 n × n 的表，再用掩码遮住。结果没错，却什么也没省：内存没省，计算也没省。",
)
def makes_the_whole_table(q, k, v, window):
    return _dense(q, k, v, right.longformer_mask(q.shape[-2], window, []))


@mistake(
    "banded_attention",
    en="The n × n table is kept in strips, in a list. Many small pieces together are as large as the table.",
    zh="把 n × n 的表一条一条存进列表里。许多小条加起来，和整张表一样大。",
)
def keeps_the_table_in_strips(q, k, v, window):
    place = torch.arange(q.shape[-2])
    strips = [rows @ k.mT / q.shape[-1] ** 0.5 for rows in q.split(8, -2)]
    hidden = [(places[:, None] - place).abs() > window for places in place.split(8)]
    return torch.cat(
        [
            torch.softmax(strip.masked_fill(hide, -torch.inf), -1) @ v
            for strip, hide in zip(strips, hidden, strict=True)
        ],
        -2,
    )


@mistake(
    "banded_attention",
    en="A few queries at a time, but each against all keys: the memory is small, the work is still n². Slice the keys as well.",
    zh="每次只取几个查询，却和所有的键相乘：内存小了，计算量还是 n²。键也要切。",
)
def goes_through_all_keys(q, k, v, window):
    n, place = q.shape[-2], torch.arange(q.shape[-2])
    return torch.cat(
        [_dense(q[..., i : i + 8, :], k, v, (place[i : i + 8, None] - place).abs() <= window) for i in range(0, n, 8)],
        -2,
    )


@mistake(
    "banded_attention",
    en="`gather` from a view expanded to n × n costs nothing forward, but its gradient is a real n × n tensor. Index the rows instead.",
    zh="对扩展成 n × n 的视图做 `gather`，前向不花什么，它的梯度却是实实在在的 n × n 张量。请改用按行取下标。",
)
def gathers_from_an_expanded_view(q, k, v, window):
    n = q.shape[-2]
    place = (torch.arange(n)[:, None] + torch.arange(-window, window + 1)).clamp(0, n - 1)

    def near(x):
        index = place[..., None].expand(*x.shape[:-2], *place.shape, x.shape[-1])
        return x[..., None, :, :].expand(*x.shape[:-2], n, n, x.shape[-1]).gather(-2, index)

    scores = (near(k) @ q[..., None])[..., 0] / q.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(_beyond(n, window), -torch.inf), -1)
    return (weights[..., None, :] @ near(v))[..., 0, :]


@mistake(
    "banded_attention",
    en="The table is made in NumPy: there it takes n × n memory all the same, and the gradient is lost.",
    zh="表是在 NumPy 里算的：照样占 n × n 的内存，而且梯度没了。",
)
def hides_the_table_in_numpy(q, k, v, window):
    mask = right.longformer_mask(q.shape[-2], window, []).numpy()
    a, b, c = (x.detach().double().numpy() for x in (q, k, v))
    scores = a @ b.swapaxes(-1, -2) / a.shape[-1] ** 0.5
    scores[..., ~mask] = -torch.inf
    weights = torch.from_numpy(scores).softmax(-1).numpy()
    return torch.from_numpy(weights @ c).to(q.dtype)


@mistake(
    "banded_attention",
    en="The window is one too narrow: a distance of exactly `window` is allowed.",
    zh="窗口窄了一格：距离恰好为 `window` 也是允许的。",
)
def leaves_out_both_edges(q, k, v, window):
    return right.banded_attention(q, k, v, max(window - 1, 0))


@mistake(
    "banded_attention",
    en="The window looks back only. Half of the band, the keys ahead, is missing.",
    zh="窗口只往回看。少了带子的另一半，也就是后面的键。",
)
def looks_back_and_not_ahead(q, k, v, window):
    beyond = _beyond(q.shape[-2], window)
    beyond[:, window + 1 :] = True
    return _mix(torch.softmax(_scores(q, k, window).masked_fill(beyond, -torch.inf), -1), v, window)


@mistake(
    "banded_attention",
    en="`roll` wraps around the ends: the first queries see the last keys. What comes from the other end must be masked.",
    zh="`roll` 会绕到另一端：最前面的查询看到了最后的键。从另一端绕来的必须遮住。",
)
def rolls_round_the_ends(q, k, v, window):
    reach = range(-window, window + 1)
    near_k = torch.stack([k.roll(-offset, -2) for offset in reach], -2)
    near_v = torch.stack([v.roll(-offset, -2) for offset in reach], -2)
    weights = torch.softmax((near_k @ q[..., None])[..., 0] / q.shape[-1] ** 0.5, -1)
    return (weights[..., None, :] @ near_v)[..., 0, :]


@mistake(
    "banded_attention",
    en="The zeros beyond the ends are attended to: a score of 0 gets weight like any other. Fill those scores with −inf.",
    zh="两端之外补的零也分到了权重：分数 0 与别的分数并无不同。请把那些分数填成 −inf。",
)
def attends_to_the_padding(q, k, v, window):
    return _mix(torch.softmax(_scores(q, k, window), -1), v, window)


@mistake(
    "banded_attention",
    en="Indices were clamped to the ends and not masked, so the first and the last key are counted several times.",
    zh="下标只是截到两端而没有遮住，于是第一个和最后一个键被算了好几次。",
)
def counts_the_ends_several_times(q, k, v, window):
    n = q.shape[-2]
    place = (torch.arange(n)[:, None] + torch.arange(-window, window + 1)).clamp(0, n - 1)
    weights = torch.softmax((k[..., place, :] @ q[..., None])[..., 0] / q.shape[-1] ** 0.5, -1)
    return (weights[..., None, :] @ v[..., place, :])[..., 0, :]


@mistake(
    "banded_attention",
    en="The sequence is cut into blocks that do not see their neighbours. A window slides; it does not stop at a border.",
    zh="把序列切成了互相看不见的块。窗口是滑动的，不会在块的边界停下。",
)
def stays_inside_its_block(q, k, v, window):
    block = torch.arange(q.shape[-2]) // (2 * window + 1)
    return _dense(q, k, v, block[:, None] == block)


@mistake("banded_attention", en="The scores are not divided by √d.", zh="分数没有除以 √d。")
def forgets_the_scale(q, k, v, window):
    return right.banded_attention(q * q.shape[-1] ** 0.5, k, v, window)


@mistake(
    "banded_attention",
    en="The softmax runs over the queries. It must run over the keys in each query's window, the last axis of the scores.",
    zh="softmax 是沿查询方向做的。应当在每个查询的窗口内，沿分数的最后一个轴做。",
)
def normalises_over_the_queries(q, k, v, window):
    scores = _scores(q, k, window).masked_fill(_beyond(q.shape[-2], window), -1e30)
    return _mix(torch.softmax(scores, -2), v, window)


@mistake(
    "banded_attention",
    en="The exponential is taken of the bare scores: large ones overflow. Subtract the row's maximum first, or use softmax.",
    zh="直接对分数取指数：分数大时会溢出。请先减去这一行的最大值，或者用 softmax。",
)
def overflows(q, k, v, window):
    votes = _scores(q, k, window).exp().masked_fill(_beyond(q.shape[-2], window), 0.0)
    return _mix(votes / votes.sum(-1, keepdim=True), v, window)


@mistake(
    "banded_attention",
    en="A window of 0 fails: `x[window:-window]` is empty then, because −0 is 0.",
    zh="窗口为 0 时出错：`x[window:-window]` 这时是空的，因为 −0 就是 0。",
)
def slices_to_minus_zero(q, k, v, window):
    padded = torch.nn.functional.pad(q, (0, 0, window, window))
    return right.banded_attention(padded[..., window:-window, :], k, v, window)


@mistake(
    "banded_attention",
    en="The last tokens are dropped where the length is not a multiple of the block.",
    zh="长度不是块的整数倍时，最后几个词元丢了。",
)
def drops_the_tail(q, k, v, window):
    whole = q.shape[-2] // (window + 1) * (window + 1)
    out = right.banded_attention(q, k, v, window)
    return torch.cat([out[..., :whole, :], torch.zeros_like(out[..., whole:, :])], -2)


@mistake(
    "banded_attention",
    en="Exactly one batch axis is expected. Leading axes may be any number: count axes from the right.",
    zh="只能有一个批次轴。前面的轴可以有任意个：请从右边数轴。",
)
def wants_one_batch_axis(q, k, v, window):
    _, _, _ = q.shape  # raises ValueError unless there are three axes
    return right.banded_attention(q, k, v, window)


@mistake(
    "banded_attention",
    en="The queries are scaled in place, which changes the caller's tensor. Write `q = q / …`, not `q /= …`.",
    zh="就地缩放了查询，改动了调用者的张量。请写 `q = q / …`，不要写 `q /= …`。",
)
def scales_the_queries_in_place(q, k, v, window):
    q /= q.shape[-1] ** 0.5
    return right.banded_attention(q * q.shape[-1] ** 0.5, k, v, window)
