"""Chapter 18: break eighteen pieces of code with an input, and repair them.

An input that should break the given code is judged here: the given code and the reference are both run on it. Every
promise of a repair asks something that the given code gets wrong, so returning the given code unchanged earns nothing.
"""

import torch
import torch.nn.functional as F

from autograder.exam import (
    Array,
    Broken,
    Number,
    agree,
    breaks,
    draw_qkv,
    gradients_match,
    left_alone,
    matches,
    promise,
    require,
)
from autograder.exam.sentences import GRADIENTS_AND_FLOAT32, NO_DROPOUT_OUTSIDE_TRAINING
from autograder.mistakes import ch18_errata_hunt as given
from autograder.reference import ch18_errata_hunt as reference

HEADS, RATE, SWITCH = Number(int, 1, 16), Number(float, 0, 1), Number(bool)


def floats(*axes):
    return Array("float", axes)


def bools(*axes):
    return Array("bool", axes)


def attention(*axes):
    """The form of q, k and v with these numbers of axes."""
    return {name: floats(*axes) for name in "qkv"}


def sees_nothing(mask, **_):
    """Refuse masks with an empty row: these tasks are not about empty rows."""
    if not mask.any(-1).all():
        return "every query must be allowed to look somewhere", "每个查询都必须至少能看到一个键"
    return None


def too_close(images, texts):
    scores = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T
    best = scores.topk(min(2, len(texts)), -1).values
    if len(texts) < 2 or (best[:, 0] - best[:, 1]).min() < 1e-3:
        return "give at least two captions, one of them clearly the nearest", "至少给两个描述，其中一个要明显最接近"
    return None


@promise(
    "break_01",
    en="Returns inputs on which the given code is wrong without an error.",
    zh="返回一组输入，使给出的代码出错却不报错。",
)
def test_a_batch_is_multiplied_along_the_wrong_axes(student):
    breaks(student, given.multiplies_the_wrong_axes, reference.repair_01, silently=True, **attention(2, 3))


@promise("repair_01", en="Every sequence of a batch attends only to its own keys.", zh="批次中的每条序列只看自己的键。")
def test_a_batch_is_attended_to_one_sequence_at_a_time(student, draw):
    matches(student, reference.repair_01, *draw_qkv(draw, 3))
    matches(student, reference.repair_01, *draw_qkv(draw, 4, lq=3, lk=4, d=4))
    matches(student, reference.repair_01, *draw_qkv(draw))


@promise(
    "repair_01",
    en="Any leading axes work, in values and gradients; the inputs stay as they were.",
    zh="任意前置轴都可以，数值和梯度都对；输入不被改动。",
)
def test_any_leading_axes_will_do(student, draw):
    left_alone(student, reference.repair_01, *draw_qkv(draw, 3, dtype=torch.float32))
    q, k, v = draw_qkv(draw, 2, 3)
    gradients_match(student, reference.repair_01, q, k, v, wrt=[0, 1, 2], cotangents=[draw(2, 3, 4, 7)])


@promise(
    "break_02",
    en="Returns inputs on which the given code gives NaN or other wrong numbers.",
    zh="返回一组输入，使给出的代码得到 NaN 或其他错误的数。",
)
def test_an_empty_row_is_found(student):
    breaks(student, given.lets_an_empty_row_become_nan, reference.repair_02, **attention(3), mask=bools(3))


@promise(
    "repair_02",
    en="A query that may look nowhere has weights 0 and output 0; all others are as they were.",
    zh="什么都不能看的查询，权重和输出都为 0；其余的不变。",
)
def test_an_empty_row_gives_zeros(student, draw):
    mask = draw.mask(3, 4, 6)
    mask[1, 2] = False
    left_alone(student, reference.repair_02, *draw_qkv(draw, 3), mask)
    matches(student, reference.repair_02, *draw_qkv(draw, 3, dtype=torch.float32), mask)


@promise(
    "repair_02", en="Gradients are right and finite, beside an empty row too.", zh="有空行时，梯度依然正确且有限。"
)
def test_an_empty_row_leaves_the_gradients_finite(student, draw):
    mask = draw.mask(3, 4, 6)
    mask[0, 3] = mask[2, 0] = False
    weights = [draw(3, 4, 7), draw(3, 4, 6)]
    gradients_match(student, reference.repair_02, *draw_qkv(draw, 3), mask, wrt=[0, 1, 2], cotangents=weights)


@promise(
    "break_03",
    en="Returns inputs on which the given code lets padding through.",
    zh="返回一组输入，使给出的代码把填充也算了进去。",
)
def test_an_empty_sequence_is_found(student):
    breaks(
        student,
        given.averages_the_padding_of_an_empty_sequence,
        reference.repair_03,
        **attention(3),
        lengths=Array("int", (1,)),
    )


@promise(
    "repair_03",
    en="A sequence without tokens gives 0; real tokens are attended to and padding is not.",
    zh="没有词元的序列得到 0；只看真实词元，不看填充。",
)
def test_an_empty_sequence_gives_zeros(student, draw):
    for lengths in (torch.tensor([5, 0, 1]), torch.tensor([0, 6, 0], dtype=torch.int32)):
        left_alone(student, reference.repair_03, *draw_qkv(draw, 3), lengths)


@promise(
    "repair_03",
    en="It works in float16, where there is no −1e9, and has finite gradients.",
    zh="在没有 −1e9 的 float16 里也正确，梯度有限。",
)
def test_half_precision_works_too(student, draw):
    q, k, v = draw_qkv(draw, 2)
    lengths = torch.tensor([0, 4])
    gradients_match(student, reference.repair_03, q, k, v, lengths, wrt=[0, 1, 2], cotangents=[draw(2, 4, 7)])
    matches(student, reference.repair_03, *draw_qkv(draw, 2, dtype=torch.float16), torch.tensor([3, 0]))


@promise(
    "break_04",
    en="Returns inputs on which the given code looks where it must not.",
    zh="返回一组输入，使给出的代码看了不该看的地方。",
)
def test_a_mask_that_forbids_is_found(student):
    breaks(student, given.adds_the_mask, reference.repair_04, **attention(3), mask=Array("float", (2,), only=(0, 1)))


@promise("repair_04", en="A key whose entry is 0 has no influence.", zh="掩码为 0 的键没有任何影响。")
def test_a_mask_of_zeros_and_ones_forbids(student, draw):
    left_alone(student, reference.repair_04, *draw_qkv(draw, 3), draw.mask(4, 6).double())
    matches(student, reference.repair_04, *draw_qkv(draw, 3, dtype=torch.float32), draw.mask(4, 6).float())


@promise(
    "repair_04",
    en="Integers and bools are masks too, and the gradients are right.",
    zh="整数和布尔掩码同样可以，梯度正确。",
)
def test_a_mask_may_have_any_dtype(student, draw):
    q, k, v = draw_qkv(draw, 3)
    for dtype in (torch.float64, torch.int64, torch.bool):
        mask = draw.mask(4, 6).to(dtype)
        gradients_match(student, reference.repair_04, q, k, v, mask, wrt=[0, 1, 2], cotangents=[draw(3, 4, 7)])


@promise(
    "break_05",
    en="Returns inputs on which the given code hides what it should show.",
    zh="返回一组输入，使给出的代码遮住了该看到的键。",
)
def test_a_cache_is_found(student):
    breaks(student, given.aligns_to_the_upper_left, reference.repair_05, **attention(3))


@promise(
    "repair_05",
    en="With more keys than queries the last query sees them all.",
    zh="键比查询多时，最后一个查询看到所有键。",
)
def test_the_last_query_sees_every_key(student, draw):
    left_alone(student, reference.repair_05, *draw_qkv(draw, 3))
    matches(student, reference.repair_05, *draw_qkv(draw, 2, lq=1, dtype=torch.float32))
    matches(student, reference.repair_05, *draw_qkv(draw, 2, lq=6))


@promise(
    "repair_05",
    en="One step with a cache is the last row of the whole, and the gradients are right.",
    zh="带缓存的一步就是整体的最后一行，梯度正确。",
)
def test_a_step_equals_the_last_row(student, draw):
    q, k, v = draw_qkv(draw, 3, lq=draw.integer(2, 5))
    matches(student, reference.repair_05, q[:, -1:], k, v)
    gradients_match(student, reference.repair_05, q, k, v, wrt=[0, 1, 2], cotangents=[draw(3, q.shape[1], 7)])


@promise(
    "break_06",
    en="Returns inputs on which the given code obeys one rule and forgets the other.",
    zh="返回一组输入，使给出的代码只守一条规则，忘了另一条。",
)
def test_two_rules_at_once_are_found(student):
    breaks(
        student, given.forgets_the_mask_when_causal, reference.repair_06, **attention(3), mask=bools(2), causal=SWITCH
    )


@promise(
    "repair_06",
    en="When it is causal, a key must be allowed by the mask and by time.",
    zh="因果时，键必须同时得到掩码和时间的允许。",
)
def test_both_rules_hold(student, draw):
    mask = draw.mask(4, 6)
    mask[:, 0], mask[:, 1:3] = False, True

    left_alone(student, reference.repair_06, *draw_qkv(draw, 3), mask, True)
    matches(student, reference.repair_06, *draw_qkv(draw, 3), mask, False)


@promise(
    "repair_06", en="The gradients obey both rules too, and float32 works.", zh="梯度也遵守两条规则，float32 同样可用。"
)
def test_both_rules_hold_in_the_gradients(student, draw):
    mask = draw.mask(4, 6)
    mask[:, 0], mask[:, 1:3] = False, True

    q, k, v = draw_qkv(draw, 3)
    gradients_match(student, reference.repair_06, q, k, v, mask, True, wrt=[0, 1, 2], cotangents=[draw(3, 4, 7)])
    matches(student, reference.repair_06, *draw_qkv(draw, 2, dtype=torch.float32), mask, True)


@promise(
    "break_07",
    en="Returns inputs on which the given code fails, although PyTorch's own function would not.",
    zh="返回一组输入，使给出的代码失败，而 PyTorch 自己的函数不会。",
)
def test_a_mask_with_more_axes_is_found(student):
    breaks(
        student, given.cannot_widen_its_bias, reference.repair_07, unless=sees_nothing, **attention(4), mask=bools(2, 4)
    )


@promise(
    "repair_07",
    en="Masks [Lq, Lk], [B, 1, Lq, Lk] and [B, H, Lq, Lk] are all obeyed.",
    zh="[Lq, Lk]、[B, 1, Lq, Lk]、[B, H, Lq, Lk] 的掩码都有效。",
)
def test_a_mask_may_have_four_axes(student, draw):
    left_alone(student, reference.repair_07, *draw_qkv(draw, 2, 3), draw.mask(2, 1, 4, 6))
    matches(student, reference.repair_07, *draw_qkv(draw, 2, 3), draw.mask(2, 3, 4, 6))
    matches(student, reference.repair_07, *draw_qkv(draw, 2, 3), draw.mask(4, 6))


@promise(
    "repair_07",
    en="The gradients are right, and a mask may share the batch or the heads.",
    zh="梯度正确；掩码可以被批次或头共用。",
)
def test_wide_masks_have_right_gradients(student, draw):
    q, k, v = draw_qkv(draw, 2, 3)
    mask = draw.mask(2, 3, 4, 6)
    gradients_match(student, reference.repair_07, q, k, v, mask, wrt=[0, 1, 2], cotangents=[draw(2, 3, 4, 7)])
    matches(student, reference.repair_07, *draw_qkv(draw, 2, 3, dtype=torch.float32), draw.mask(1, 3, 4, 6))


@promise(
    "break_08",
    en="Returns inputs on which the given code returns weights that are no longer attention weights.",
    zh="返回一组输入，使给出的代码返回的权重已经不是权重。",
)
def test_weights_after_dropout_are_found(student):
    breaks(student, given.returns_the_dropped_weights, reference.repair_08, **attention(2), p=RATE, training=SWITCH)


@promise(
    "repair_08",
    en="With p = 1 in training the output is 0 and the weights are untouched; without dropout nothing changes.",
    zh="训练且 p = 1 时输出为 0、权重原样返回；没有 dropout 时什么都不变。",
)
def test_weights_come_back_before_dropout(student, draw):
    left_alone(student, reference.repair_08, *draw_qkv(draw), 1.0, True)
    matches(student, reference.repair_08, *draw_qkv(draw), 0.0, True)
    matches(student, reference.repair_08, *draw_qkv(draw), 0.5, False)


@promise(
    "repair_08",
    en="The gradients of the returned weights are those before dropout.",
    zh="返回的权重，其梯度是 dropout 之前的。",
)
def test_weights_before_dropout_have_gradients(student, draw):
    q, k, v = draw_qkv(draw)
    gradients_match(student, reference.repair_08, q, k, v, 1.0, True, wrt=[0, 1], cotangents=[None, draw(4, 6)])
    matches(student, reference.repair_08, *draw_qkv(draw, dtype=torch.float32), 1.0, True)


@promise(
    "break_09",
    en="Returns inputs on which the given code drops when it should not.",
    zh="返回一组输入，使给出的代码在不该丢弃时丢弃。",
)
def test_dropout_in_eval_is_found(student):
    breaks(student, given.drops_outside_training, reference.repair_09, **attention(3), p=RATE, training=SWITCH)


@promise("repair_09", NO_DROPOUT_OUTSIDE_TRAINING)
def test_nothing_is_dropped_outside_training(student, draw):
    left_alone(student, reference.repair_09, *draw_qkv(draw, 3), 1.0, False)
    matches(student, reference.repair_09, *draw_qkv(draw, 3, dtype=torch.float32), 1.0, False)


@promise(
    "repair_09",
    en="In training p acts: p = 1 gives 0, and p = 0 drops nothing. Outside training the gradients are complete.",
    zh="训练时 p 起作用（p = 1 得 0，p = 0 毫无损失）；不训练时梯度完整。",
)
def test_training_still_drops(student, draw):
    q, k, v = draw_qkv(draw, 3)
    matches(student, reference.repair_09, q, k, v, 1.0, True)
    matches(student, reference.repair_09, q, k, v, 0.0, True)
    gradients_match(student, reference.repair_09, q, k, v, 1.0, False, wrt=[0, 1, 2], cotangents=[draw(3, 4, 7)])


@promise(
    "break_10",
    en="Returns inputs on which the given code does not use the rate that was asked for.",
    zh="返回一组输入，使给出的代码用的比率不是所要求的。",
)
def test_a_lost_rate_is_found(student):
    breaks(student, given.forgets_the_rate, reference.repair_10, **attention(3), p=RATE, training=SWITCH)


def answers_are(student, *questions):
    """Check each answer. Answers may be random, so the transcript keeps only whether each one is right."""
    broken = []
    for question in questions:
        value = student.repair_10(*question)
        try:
            agree(value, reference.repair_10, *question)
            broken.append(None)
        except Broken as fault:
            broken.append(fault)
    student.replace_transcript([fault is None for fault in broken])
    for fault in filter(None, broken):
        raise fault


@promise(
    "repair_10",
    en="With p = 1 everything is dropped in training, and nothing outside training.",
    zh="p = 1 时，训练中全部丢弃，训练外一个不丢。",
)
def test_the_rate_arrives(student, draw):
    many = draw_qkv(draw, 3, lq=20, lk=24)
    answers_are(student, (*many, 1.0, True), (*many, 1.0, False))


@promise(
    "repair_10",
    en="With p = 0 nothing is dropped in training either, and the inputs stay as they were.",
    zh="p = 0 时，训练中也什么都不丢；输入不被改动。",
)
def test_a_rate_of_zero_is_a_rate(student, draw):
    many = draw_qkv(draw, 3, lq=20, lk=24)
    answers_are(student, (*many, 0.0, True), (*many, 0.5, False))
    require(
        not student.changes_inputs("repair_10", *draw_qkv(draw, 2), 0.0, True),
        "repair_10: the inputs were changed",
        "repair_10：输入被改动了",
    )


@promise(
    "break_11",
    en="Returns inputs on which the given code is right in shape and wrong in content.",
    zh="返回一组输入，使给出的代码形状对，内容错。",
)
def test_heads_of_scrambled_numbers_are_found(student):
    breaks(student, given.cuts_in_the_wrong_order, reference.repair_11, x=floats(3), num_heads=HEADS)


@promise(
    "repair_11",
    en="Head h holds the columns h·D … h·D + D − 1 of every token.",
    zh="头 h 装着每个词元的第 h·D … h·D + D − 1 列。",
)
def test_each_head_has_its_own_columns(student, draw):
    left_alone(student, reference.repair_11, draw(2, 5, 12), 3)
    matches(student, reference.repair_11, draw(3, 2, 20), 4)


@promise("repair_11", GRADIENTS_AND_FLOAT32)
def test_cutting_heads_passes_gradients_on(student, draw):
    gradients_match(student, reference.repair_11, draw(2, 5, 12), 3, wrt=[0], cotangents=[draw(2, 3, 5, 4)])
    matches(student, reference.repair_11, draw(2, 5, 12, dtype=torch.float32), 3)


@promise(
    "break_12",
    en="Returns inputs on which the given code glues pieces of different tokens together.",
    zh="返回一组输入，使给出的代码把不同词元的碎片粘在一起。",
)
def test_a_scrambled_merge_is_found(student):
    breaks(student, given.glues_heads_of_different_tokens, reference.repair_12, heads=floats(4))


@promise(
    "repair_12",
    en="Row [t, b] holds all heads of token t of sequence b, in order.",
    zh="第 [t, b] 行依次装着序列 b 中词元 t 的所有头。",
)
def test_the_heads_of_a_token_are_side_by_side(student, draw):
    left_alone(student, reference.repair_12, draw(2, 3, 5, 4))
    matches(student, reference.repair_12, draw(3, 2, 4, 5))


@promise("repair_12", GRADIENTS_AND_FLOAT32)
def test_merging_heads_passes_gradients_on(student, draw):
    gradients_match(student, reference.repair_12, draw(2, 3, 5, 4), wrt=[0], cotangents=[draw(5, 2, 12)])
    matches(student, reference.repair_12, draw(2, 3, 5, 4, dtype=torch.float32))


@promise(
    "break_13",
    en="Returns inputs on which the given code lets no token see another.",
    zh="返回一组输入，使给出的代码让词元之间互不相见。",
)
def test_tokens_that_never_meet_are_found(student):
    breaks(student, given.attends_over_its_own_heads, reference.repair_13, x=floats(3), num_heads=HEADS)


@promise(
    "repair_13",
    en="In every head each token attends to all tokens of its own sequence.",
    zh="在每个头里，每个词元都看到自己序列的所有词元。",
)
def test_tokens_attend_to_tokens(student, draw):
    left_alone(student, reference.repair_13, draw(5, 2, 12), 3)
    matches(student, reference.repair_13, draw(3, 4, 18), 2)


@promise("repair_13", GRADIENTS_AND_FLOAT32)
def test_tokens_reach_each_other_in_the_gradients(student, draw):
    gradients_match(student, reference.repair_13, draw(5, 2, 12), 3, wrt=[0], cotangents=[draw(5, 2, 12)])
    matches(student, reference.repair_13, draw(5, 2, 12, dtype=torch.float32), 3)


@promise(
    "break_14",
    en="Returns inputs on which the given code should raise an error and does not.",
    zh="返回一组输入，使给出的代码本该拒绝，却一声不响。",
)
def test_invented_tokens_are_found(student):
    breaks(
        student, given.invents_tokens, reference.repair_14, silently=True, refusal=True, x=floats(3), num_heads=HEADS
    )


def refuses(student, x, num_heads):
    require(
        student.refuses("repair_14", x, num_heads),
        f"repair_14: {num_heads} heads and a width of {x.shape[-1]} do not raise ValueError",
        f"repair_14：{num_heads} 个头、宽度 {x.shape[-1]}，没有抛出 ValueError",
    )


@promise(
    "repair_14",
    en="Heads that do not divide the width raise ValueError; others split it.",
    zh="不能整除宽度的头数抛出 ValueError；能整除的照常拆分。",
)
def test_heads_that_do_not_divide_are_refused(student, draw):
    left_alone(student, reference.repair_14, draw(2, 5, 12), 3)
    refuses(student, draw(2, 9, 10), 3)


@promise(
    "repair_14",
    en="It does not matter whether the number of elements happens to fit; the gradients are right.",
    zh="元素个数是否碰巧凑得齐无关紧要；梯度正确。",
)
def test_other_sizes_are_refused_too(student, draw):
    gradients_match(student, reference.repair_14, draw(2, 5, 12), 3, wrt=[0], cotangents=[draw(2, 3, 5, 4)])
    refuses(student, draw(3, 4, 7), 2)


@promise(
    "break_15",
    en="Returns inputs on which the given code masks the wrong head without an error.",
    zh="返回一组输入，使给出的代码把掩码用到了别的头上却不报错。",
)
def test_a_mask_on_the_wrong_heads_is_found(student):
    breaks(
        student,
        given.lays_the_batch_on_the_heads,
        reference.repair_15,
        silently=True,
        unless=sees_nothing,
        **attention(4),
        mask=bools(3),
    )


@promise(
    "repair_15",
    en="Sequence b has mask b in all its heads, also when there are as many heads as sequences.",
    zh="序列 b 的所有头都用掩码 b，头数与序列数相等时也一样。",
)
def test_each_sequence_has_its_mask(student, draw):
    mask = draw.mask(3, 4, 6)
    mask[0], mask[1, :, :3], mask[1, :, 3:] = True, False, True
    left_alone(student, reference.repair_15, *draw_qkv(draw, 3, 3), mask)
    matches(student, reference.repair_15, *draw_qkv(draw, 3, 2), mask)


@promise("repair_15", GRADIENTS_AND_FLOAT32)
def test_each_sequence_has_its_mask_in_the_gradients(student, draw):
    q, k, v = draw_qkv(draw, 3, 2)
    mask = draw.mask(3, 4, 6)
    gradients_match(student, reference.repair_15, q, k, v, mask, wrt=[0, 1, 2], cotangents=[draw(3, 2, 4, 7)])
    matches(student, reference.repair_15, *draw_qkv(draw, 3, 5, dtype=torch.float32), mask)


@promise(
    "break_16",
    en="Returns inputs on which the given code gives each head another mask without an error.",
    zh="返回一组输入，使给出的代码给每个头换了不同的掩码却不报错。",
)
def test_a_mask_that_differs_by_head_is_found(student):
    breaks(
        student,
        given.lays_the_queries_on_the_heads,
        reference.repair_16,
        silently=True,
        unless=sees_nothing,
        **attention(4),
        mask=bools(2, 3),
    )


@promise(
    "repair_16",
    en="A mask [Lq, Lk] is for all sequences, a mask [B, Lq, Lk] gives each its own; all heads see the same.",
    zh="[Lq, Lk] 的掩码人人共用，[B, Lq, Lk] 的各归各的序列；所有头看到的都一样。",
)
def test_flat_and_deep_masks_work(student, draw):
    flat = torch.ones(4, 6, dtype=torch.bool).tril(draw.integer(0, 2))

    left_alone(student, reference.repair_16, *draw_qkv(draw, 2, 4), flat)
    matches(student, reference.repair_16, *draw_qkv(draw, 2, 3), flat)
    matches(student, reference.repair_16, *draw_qkv(draw, 2, 3), draw.mask(2, 4, 6))


@promise(
    "repair_16",
    en="With masks of both kinds the gradients are right, and float32 works.",
    zh="两种掩码下，梯度数值都正确，float32 同样可用。",
)
def test_flat_and_deep_masks_have_right_gradients(student, draw):
    flat = torch.ones(4, 6, dtype=torch.bool).tril(draw.integer(0, 2))

    for mask in (flat, draw.mask(3, 4, 6)):
        q, k, v = draw_qkv(draw, 3, 4)
        gradients_match(student, reference.repair_16, q, k, v, mask, wrt=[0, 1, 2], cotangents=[draw(3, 4, 4, 7)])
    matches(student, reference.repair_16, *draw_qkv(draw, 3, 3, dtype=torch.float32), draw.mask(3, 4, 6))


@promise(
    "break_17",
    en="Returns inputs on which the given code picks the wrong caption.",
    zh="返回一组输入，使给出的代码选错了描述。",
)
def test_a_loud_caption_is_found(student):
    breaks(
        student, given.prefers_long_captions, reference.repair_17, unless=too_close, images=floats(2), texts=floats(2)
    )


def captions(draw, dtype=torch.float64):
    """Five captions, one short and four long, and images of each one and of every two, more of one than the other."""
    basis = torch.linalg.qr(draw(8, 8)).Q
    texts = torch.cat([basis[:1], 0.6 * basis[:1] + 0.8 * basis[1:5]])
    between = 0.7 * texts[:, None] + 0.3 * texts  # [5, 5, 8]; on the diagonal the captions themselves
    images = between.flatten(0, 1) * (1 + draw(25, 1).abs()) + 0.01 * draw(25, 8)
    texts = texts * torch.tensor([[0.2], [3.0], [5.0], [7.0], [9.0]], dtype=torch.float64)
    return images.to(dtype), texts[draw.permutation(5)].to(dtype)


@promise(
    "repair_17", en="The nearest direction wins, however short its vector is.", zh="方向最近的获胜，不管它的向量多短。"
)
def test_direction_decides_and_not_length(student, draw):
    left_alone(student, reference.repair_17, *captions(draw))
    matches(student, reference.repair_17, *captions(draw, torch.float32))


@promise(
    "repair_17",
    en="Making all images or all captions longer changes nothing.",
    zh="把所有图像或所有描述的向量拉长，结果不变。",
)
def test_captions_of_any_length_work(student, draw):
    images, texts = captions(draw)
    for scale in (0.1, 10.0):
        matches(student, reference.repair_17, images * scale, texts)
        matches(student, reference.repair_17, images, texts * scale)


@promise(
    "break_18",
    en="Returns inputs on which the given code lets users read each other.",
    zh="返回一组输入，使给出的代码让用户互相读到对方。",
)
def test_users_that_read_each_other_are_found(student):
    breaks(student, given.reads_the_batch_as_time, reference.repair_18, items=floats(3))


@promise(
    "repair_18",
    en="Each user's answer depends on that user's own items, and on nobody else's.",
    zh="每个用户的结果只取决于自己的物品，与别人无关。",
)
def test_a_user_reads_the_own_history(student, draw):
    left_alone(student, reference.repair_18, draw(3, 5, 4))
    matches(student, reference.repair_18, draw(2, 6, 9))


@promise("repair_18", GRADIENTS_AND_FLOAT32)
def test_only_the_own_history_has_gradients(student, draw):
    gradients_match(student, reference.repair_18, draw(3, 5, 4), wrt=[0], cotangents=[draw(3, 4)])
    matches(student, reference.repair_18, draw(4, 3, 16, dtype=torch.float32))
