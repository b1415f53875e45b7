"""Chapter 14: sparse attention."""

import torch

from autograder.exam import agree, fits_in, gradients_match, grows_at_most, left_alone, matches, promise, require
from autograder.exam.sentences import ANY_LEADING_AXES, GRADIENTS, LOW_PRECISION_AND_INPUTS
from autograder.reference import ch14_sparse as reference

LENGTHS = (128, 256)  # long enough for an answer that works in blocks of 128


@promise(
    "longformer_mask",
    en="Without global tokens each token sees the neighbours at most `window` places away, itself included.",
    zh="没有全局词元时，每个词元看到相距不超过 `window` 的邻居，包括自己。",
    weight=2,
)
def test_the_window_reaches_equally_far_to_both_sides(student, draw):
    n = draw.integer(9, 12)
    for window in (3, 2, 1, 0):
        matches(student, reference.longformer_mask, n, window, [])


@promise(
    "longformer_mask",
    en="A global token sees all tokens and is seen by all tokens.",
    zh="全局词元看到所有词元，也被所有词元看到。",
    weight=2,
)
def test_global_tokens_see_and_are_seen(student, draw):
    n = draw.integer(10, 13)
    first, second = draw.integer(2, 4), draw.integer(6, 8)
    matches(student, reference.longformer_mask, n, 1, [first])
    matches(student, reference.longformer_mask, n, 2, [first, second])


@promise(
    "longformer_mask",
    en="The global tokens may be a tensor, in any order, and stay as they were.",
    zh="全局词元也可以是张量，顺序任意，并且不被改动。",
)
def test_a_tensor_of_global_tokens(student, draw):
    n = draw.integer(10, 13)
    left_alone(student, reference.longformer_mask, n, 1, torch.tensor([7, draw.integer(3, 5), 0]))
    matches(student, reference.longformer_mask, n, 2, torch.tensor([], dtype=torch.long))


@promise(
    "longformer_mask",
    en="A window wider than the sequence shows everything; a single token sees itself.",
    zh="窗口比序列还宽时，什么都看得到；只有一个词元时，它看到自己。",
)
def test_the_smallest_and_the_widest(student, draw):
    n = draw.integer(4, 6)
    matches(student, reference.longformer_mask, n, n + 2, [1])
    matches(student, reference.longformer_mask, 1, 0, [])
    matches(student, reference.longformer_mask, n + 3, 0, [n])


def bigbird_mask(n, window, global_tokens):
    """BigBird's mask without random keys."""
    return reference.longformer_mask(n, window, global_tokens)


class Sample:
    """One mask drawn by the student, and facts about it that do not depend on which keys were drawn."""

    def __init__(self, student, draw, n, window, global_tokens, random_per_row, seed=None):
        self.wanted = random_per_row
        self.mask = student.bigbird_mask(n, window, global_tokens, random_per_row, seed or draw.seeded())
        self.form = [*self.mask.shape, str(self.mask.dtype)] if isinstance(self.mask, torch.Tensor) else []
        self.sound = self.form == [n, n, "torch.bool"]
        if self.sound:
            base = reference.longformer_mask(n, window, global_tokens)
            ordinary = ~torch.isin(torch.arange(n), torch.as_tensor(global_tokens, dtype=torch.long))
            self.lost = int((base & ~self.mask).sum())
            self.further = (self.mask & ~base)[ordinary]
            counts = self.further.sum(-1)
            self.fewest, self.most = int(counts.min()), int(counts.max())

    @property
    def facts(self) -> list:
        if not self.sound:
            return self.form
        return [self.lost, min(self.wanted - self.fewest, 2), min(self.most - self.wanted, 2), self._symmetric]

    @property
    def _symmetric(self) -> bool:
        return torch.equal(self.mask, self.mask.T)

    def judge(self) -> None:
        require(
            self.sound,
            f"bigbird_mask: {self.form or 'no tensor'}, expected a square bool mask",
            f"bigbird_mask：得到 {self.form or '不是张量'}，应为方形的布尔掩码",
        )
        require(
            self.lost == 0,
            f"bigbird_mask: {self.lost} entries of Longformer's mask are missing",
            f"bigbird_mask：Longformer 掩码中有 {self.lost} 处丢失了",
        )
        require(
            self.fewest == self.most == self.wanted,
            f"bigbird_mask: rows have {self.fewest} to {self.most} further keys; each needs exactly {self.wanted}",
            f"bigbird_mask：各行另有 {self.fewest} 到 {self.most} 个键；每行应恰好 {self.wanted} 个",
        )


def judge_all(student, *samples) -> None:
    student.replace_transcript([sample.facts for sample in samples])
    for sample in samples:
        sample.judge()


@promise(
    "bigbird_mask",
    en="With no random keys it is Longformer's mask.",
    zh="不要随机键时，它就是 Longformer 的掩码。",
)
def test_without_random_keys_it_is_longformers_mask(student, draw):
    n = draw.integer(9, 12)
    for window, tokens in ((2, [draw.integer(3, 5)]), (1, torch.tensor([6, 0])), (3, [])):
        agree(student.bigbird_mask(n, window, tokens, 0, draw.seeded()), bigbird_mask, n, window, tokens)


@promise(
    "bigbird_mask",
    en="Each row of a token that is not global gets exactly `random_per_row` further, distinct keys.",
    zh="每个非全局词元的那一行，恰好另有 `random_per_row` 个互不相同的键。",
    weight=2,
)
def test_each_row_gets_exactly_so_many_further_keys(student, draw):
    n = draw.integer(40, 44)
    samples = [Sample(student, draw, n, 3, [draw.integer(8, 12), 30, 35], r) for r in (1, 7, 20)]
    judge_all(student, *samples, Sample(student, draw, n, 2, [], 5))


@promise(
    "bigbird_mask",
    en="All free keys may be asked for; one more than some row has left raises ValueError.",
    zh="可以要走全部空闲的键；只要有一行不够，就抛出 ValueError。",
)
def test_asking_for_more_keys_than_there_are(student, draw):
    n, tokens = draw.integer(11, 14), [2, 5]
    everything = Sample(student, draw, n, 0, tokens, n - 3)
    most = Sample(student, draw, n, 2, [], n - 5)  # rows in the middle have no more free keys, rows at the ends do
    alone = Sample(student, draw, n, 0, [], n - 1)
    refused = [
        student.refuses("bigbird_mask", n, 0, tokens, n - 2, draw.seeded()),
        student.refuses("bigbird_mask", n, 2, [], n - 4, draw.seeded()),
        student.refuses("bigbird_mask", n, 1, tokens, n, draw.seeded()),
    ]
    student.replace_transcript([everything.facts, most.facts, alone.facts, refused])
    for sample in (most, everything, alone):
        sample.judge()
    require(
        all(refused),
        "bigbird_mask: asking for more keys than a row has left does not raise ValueError",
        "bigbird_mask：要的键比某一行剩下的还多，却没有抛出 ValueError",
    )


@promise(
    "bigbird_mask",
    en="The generator decides: same seed, same mask; other seed, other mask. PyTorch's global generator is not touched.",
    zh="由 generator 决定：种子相同，掩码相同；种子不同，掩码不同。PyTorch 的全局生成器不受影响。",
    weight=2,
)
def test_the_generator_and_nothing_else_decides(student, draw):
    n, seed, other = draw.integer(40, 44), draw.seeded(), draw.seeded()
    asked = (n, 2, [draw.integer(5, 9)], 6)
    first, again, different = (Sample(student, draw, *asked, seed=which) for which in (seed, seed, other))
    stirs = student.draws_random("bigbird_mask", *asked, seed)
    same = first.sound and again.sound and torch.equal(first.mask, again.mask)
    varies = first.sound and different.sound and not torch.equal(first.mask, different.mask)
    student.replace_transcript([first.facts, same, varies, stirs])
    first.judge()
    require(
        same,
        "bigbird_mask: two generators with the same seed give different masks; is `generator` used?",
        "bigbird_mask：两个种子相同的生成器给出了不同的掩码；用到 `generator` 了吗？",
    )
    require(
        varies,
        "bigbird_mask: generators with different seeds give the same mask",
        "bigbird_mask：种子不同的生成器给出了相同的掩码",
    )
    require(
        not stirs,
        "bigbird_mask: the call changes PyTorch's global generator",
        "bigbird_mask：这次调用改变了 PyTorch 的全局生成器",
    )


@promise(
    "bigbird_mask",
    en="The further keys lie on both sides and everywhere, drawn separately for each row.",
    zh="另外的键两边都有、到处都有，每一行各抽各的。",
)
def test_the_further_keys_come_from_everywhere(student, draw):
    n, r = 200, 20
    sample = Sample(student, draw, n, 3, [], r)
    if sample.sound and sample.further.shape == (n, n):
        ahead = float(sample.further.triu().sum() / sample.further.sum().clamp(min=1))
        unseen = int((sample.further.sum(0) == 0).sum())
    else:
        ahead, unseen = 0.0, n
    both_sides, everywhere = 0.3 < ahead < 0.7, unseen == 0
    student.replace_transcript([sample.facts, both_sides, everywhere])
    sample.judge()
    require(
        both_sides,
        f"bigbird_mask: {ahead:.0%} of the random keys lie ahead of their query; about half should",
        f"bigbird_mask：{ahead:.0%} 的随机键在查询之后，应当大约一半",
    )
    require(
        everywhere,
        f"bigbird_mask: {unseen} of {n} keys are drawn by no row at all: do all rows share one draw?",
        f"bigbird_mask：{n} 个键中有 {unseen} 个没有任何一行抽到：是不是所有行共用了一次抽取？",
    )


def chain(n, window):
    return reference.longformer_mask(n, window, [])


@promise("hops", en="A window of w takes ⌈(n−1)/w⌉ steps from end to end.", zh="窗口为 w 时，从头到尾要 ⌈(n−1)/w⌉ 步。")
def test_a_window_is_crossed_step_by_step(student, draw):
    n = draw.integer(12, 16)
    for window in (1, 2, 3, 5):
        matches(student, reference.hops, chain(n, window))
    matches(student, reference.hops, torch.ones(n, n, dtype=torch.bool))


@promise(
    "hops",
    en="One symmetric global token brings it down to 2; a one-way one helps little or not at all.",
    zh="一个对称的全局词元使它降到 2；只有单向时，几乎没有或完全没有帮助。",
)
def test_a_global_token_must_be_seen_too(student, draw):
    n, token = draw.integer(14, 18), draw.integer(3, 6)
    matches(student, reference.hops, reference.longformer_mask(n, 1, [token]))
    for blind in (0, token):
        sees = chain(n, 2)
        sees[blind] = True
        matches(student, reference.hops, sees)


@promise(
    "hops",
    en="Looking is one-way: a ring in which each token sees only the next takes n−1 steps.",
    zh="「看」是单向的：每个词元只看下一个的环，要 n−1 步。",
)
def test_looking_has_a_direction(student, draw):
    n = draw.integer(6, 9)
    ring = torch.eye(n, dtype=torch.bool).roll(1, 1)
    matches(student, reference.hops, ring | torch.eye(n, dtype=torch.bool))
    ring[0, draw.integer(3, 4)] = True
    matches(student, reference.hops, ring | torch.eye(n, dtype=torch.bool))


@promise(
    "hops",
    en="A token keeps what it knows, also where the mask's diagonal is False (the residual).",
    zh="即使掩码的对角线为 False，词元也保有自己已知的东西（残差）。",
)
def test_the_residual_counts(student, draw):
    n = draw.integer(6, 9)
    others = ~torch.eye(n, dtype=torch.bool)
    matches(student, reference.hops, chain(n, 1) & others)
    matches(student, reference.hops, torch.eye(n, dtype=torch.bool).roll(1, 1))


@promise(
    "hops",
    en="−1 if some token never hears from another; the mask stays as it was.",
    zh="只要有词元永远听不到另一个词元，就是 −1；传入的掩码不变。",
)
def test_what_is_never_reached(student, draw):
    n = draw.integer(6, 9)
    left_alone(student, reference.hops, torch.ones(n, n, dtype=torch.bool).tril())
    parted = chain(n, 1)
    parted[2, 3] = parted[3, 2] = False
    matches(student, reference.hops, parted)


@promise(
    "hops",
    en="Long paths are followed to their end; a single token takes 0 steps.",
    zh="再长的路也走到底；只有一个词元时是 0 步。",
)
def test_the_longest_and_the_shortest(student, draw):
    matches(student, reference.hops, chain(draw.integer(92, 99), 1))
    matches(student, reference.hops, torch.ones(1, 1, dtype=torch.bool))


def drawn(draw, *lead, n=11, d=4, e=6, dtype=torch.float64, scale=1.0):
    """q, k, v of one length with pairwise distinct sizes.

    √d is a whole number, because many people compute it in float32.
    """
    return draw(*lead, n, d, dtype=dtype, scale=scale), draw(*lead, n, d, dtype=dtype), draw(*lead, n, e, dtype=dtype)


@promise(
    "banded_attention",
    en="The result is that of dense attention under the mask |i − j| ≤ window.",
    zh="结果与掩码 |i − j| ≤ window 下的稠密注意力相同。",
    weight=2,
)
def test_it_is_dense_attention_under_the_band(student, draw):
    for window in (2, 3, 1):
        matches(student, reference.banded_attention, *drawn(draw, 2, 3), window)


@promise(
    "banded_attention",
    en="At both ends there are fewer keys, also where the window reaches beyond both.",
    zh="两端的键更少；窗口同时伸出两端时也正确。",
)
def test_the_window_may_reach_beyond_both_ends(student, draw):
    matches(student, reference.banded_attention, *drawn(draw, 3, n=7), 5)
    matches(student, reference.banded_attention, *drawn(draw, 3, n=5), 8)


@promise(
    "banded_attention",
    en="A window of 0 returns the values.",
    zh="窗口为 0 时，返回的就是各个值。",
)
def test_no_window_at_all(student, draw):
    matches(student, reference.banded_attention, *drawn(draw, 2, n=7), 0)


@promise(
    "banded_attention",
    en="Any length works; it need not be a multiple of anything.",
    zh="任何长度都可以，不必是什么的倍数。",
)
def test_any_length(student, draw):
    for n in (1, 5, 8, 9, 16, 19):
        matches(student, reference.banded_attention, *drawn(draw, 2, n=n), 3)


@promise("banded_attention", ANY_LEADING_AXES)
def test_any_leading_axes(student, draw):
    matches(student, reference.banded_attention, *drawn(draw), 2)
    matches(student, reference.banded_attention, *drawn(draw, 2, 5, 3), 3)


@promise(
    "banded_attention",
    en="Large scores do not overflow, and very negative ones do not lose to positions beyond the ends.",
    zh="分数再大也不溢出；分数再低也不会输给两端之外的位置。",
)
def test_large_scores(student, draw):
    q, k, v = drawn(draw, 2)
    side = draw(4)
    side *= 80 / side.norm()  # scores of about 3200
    for sign in (1.0, -1.0):
        matches(student, reference.banded_attention, side + q, sign * side + k, v, 2)


@promise("banded_attention", GRADIENTS)
def test_banded_gradients(student, draw):
    q, k, v = drawn(draw, 2)
    gradients_match(student, reference.banded_attention, q, k, v, 3, wrt=(0, 1, 2), cotangents=(draw(2, 11, 6),))


@promise("banded_attention", LOW_PRECISION_AND_INPUTS)
def test_banded_in_lower_precision(student, draw):
    left_alone(student, reference.banded_attention, *drawn(draw, 3, dtype=torch.float32), 2)
    matches(student, reference.banded_attention, *drawn(draw, 3, dtype=torch.bfloat16), 2)


def long(draw):
    return lambda n: (*drawn(draw, n=n), 2)


def costs(student, draw, what, **asked):
    matches(student, reference.banded_attention, *drawn(draw, n=13), 2)
    grows_at_most(student, "banded_attention", long(draw), lengths=LENGTHS, power=1.0, what=what, **asked)


@promise(
    "banded_attention",
    en="No n × n tensor is made: the largest grows as n.",
    zh="不产生 n × n 的张量：最大的张量按 n 增长。",
)
def test_no_square_tensor(student, draw):
    costs(student, draw, "largest")


@promise(
    "banded_attention",
    en="The n × n table is not kept in pieces either: the memory held at once grows as n, in PyTorch and outside.",
    zh="也不拆成小块存着：同时占用的内存按 n 增长，PyTorch 内外都一样。",
)
def test_no_square_in_pieces(student, draw):
    costs(student, draw, "live")
    fits_in(student, "banded_attention", *drawn(draw, 8, n=640), 1, megabytes=10)  # the tables would take 13 or 26 MB


@promise(
    "banded_attention",
    en="Work grows as n: keys beyond the window are not even looked at.",
    zh="计算量按 n 增长：窗口之外的键连看都不看。",
    weight=2,
)
def test_no_work_beyond_the_window(student, draw):
    costs(student, draw, ("flops", "elements", "left"))


@promise(
    "banded_attention",
    en="The backward pass makes no n × n tensor either, and keeps none in pieces.",
    zh="反向传播也不产生 n × n 的张量，也不拆成小块存着。",
)
def test_no_square_in_the_backward_pass(student, draw):
    costs(student, draw, ("largest", "live"), wrt=(0, 1, 2), cotangents=lambda n: (draw(n, 6),))
