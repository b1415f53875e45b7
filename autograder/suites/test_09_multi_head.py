"""Chapter 9: multi-head attention."""

import torch

from autograder.exam import (
    PRECISIONS,
    Loaded,
    agree,
    gradients_match,
    left_alone,
    matches,
    promise,
    require,
    require_refused,
    triangle,
)
from autograder.exam.sentences import (
    DTYPE_STAYS,
    FLOAT32_AND_BFLOAT16,
    FORBIDDEN_SCORE_HAS_NO_EFFECT,
    GRADIENTS_OF_ALL_LAYERS,
    HEADS_MUST_DIVIDE_THE_WIDTH,
    INPUTS_STAY,
    INPUTS_STAY_IN_TRAINING_TOO,
    NO_BIAS_ANYWHERE,
)
from autograder.reference import ch09_multi_head as reference


def refuses(student, name, *args):
    require(
        student.refuses(name, *args),
        f"{name}: heads that do not divide the width must raise ValueError",
        f"{name}：头数不能整除宽度时应抛出 ValueError",
    )


# split_heads


@promise(
    "split_heads",
    en="Head h holds the features h·d … h·d + d − 1 of every token, at [B, H, L, d].",
    zh="第 h 个头拿到每个词元的第 h·d … h·d + d − 1 个特征，形状为 [B, H, L, d]。",
    weight=2,
)
def test_each_head_takes_its_slice_of_every_token(student, draw):
    matches(student, reference.split_heads, draw(2, 5, 12), 3)
    matches(student, reference.split_heads, draw(3, draw.integer(4, 6), 14), 2)


@promise(
    "split_heads",
    en="Entries only move: whole numbers stay exactly what they were.",
    zh="元素只是换位置：整数一个也不变。",
)
def test_splitting_moves_entries_and_computes_nothing(student, draw):
    matches(student, reference.split_heads, draw.permutation(2 * 4 * 15).view(2, 4, 15), 5)


@promise(
    "split_heads",
    en="One head works, and so do heads of width one.",
    zh="只有一个头，或每个头宽度为 1，也都正确。",
)
def test_one_head_and_heads_of_width_one(student, draw):
    x = draw(2, 3, 5)
    matches(student, reference.split_heads, x, 1)
    matches(student, reference.split_heads, x, 5)


@promise(
    "split_heads",
    en="Gradients flow back to the features they came from.",
    zh="梯度沿原路回到各自的特征。",
)
def test_gradients_pass_through_the_split(student, draw):
    x, cotangent = draw(2, 5, 12), draw(2, 3, 5, 4)
    gradients_match(student, reference.split_heads, x, 3, wrt=(0,), cotangents=(cotangent,))


@promise("split_heads", DTYPE_STAYS)
def test_splitting_keeps_the_dtype(student, draw):
    for dtype in PRECISIONS:
        matches(student, reference.split_heads, draw(3, 4, 10, dtype=dtype), 2)


@promise("split_heads", HEADS_MUST_DIVIDE_THE_WIDTH)
def test_splitting_refuses_heads_that_do_not_divide(student, draw):
    refuses(student, "split_heads", draw(2, 3, 10), 4)
    matches(student, reference.split_heads, draw(2, 3, 10), 5)


@promise("split_heads", INPUTS_STAY)
def test_splitting_leaves_its_input_alone(student, draw):
    left_alone(student, reference.split_heads, draw(2, 5, 12), 4)


# merge_heads


@promise(
    "merge_heads",
    en="The heads of one token are put side by side: [B, L, H·D].",
    zh="同一词元的各个头并排拼在一起：[B, L, H·D]。",
    weight=2,
)
def test_the_heads_of_a_token_stand_side_by_side(student, draw):
    matches(student, reference.merge_heads, draw(2, 3, 5, 4))
    matches(student, reference.merge_heads, draw(3, 2, draw.integer(4, 6), 7))


@promise("merge_heads", en="It undoes split_heads, exactly.", zh="它恰好是 split_heads 的逆。")
def test_merging_undoes_splitting(student, draw):
    x = draw.permutation(2 * 4 * 15).view(2, 4, 15)
    heads = reference.split_heads(x, 5).contiguous()
    merged = matches(student, reference.merge_heads, heads)
    require(
        torch.equal(merged, x),
        "merge_heads: split and merged, the tensor is not what it was",
        "merge_heads：拆开再合并，得到的张量与原来不同",
    )


@promise(
    "merge_heads",
    en="One head, heads of width one and a single token all work.",
    zh="只有一个头、头的宽度为 1、只有一个词元，也都正确。",
)
def test_merging_one_head_one_feature_or_one_token(student, draw):
    for shape in ((2, 1, 3, 5), (2, 5, 3, 1), (2, 3, 1, 4)):
        matches(student, reference.merge_heads, draw(*shape))


@promise(
    "merge_heads",
    en="Gradients flow back to the heads they came from.",
    zh="梯度沿原路回到各自的头。",
)
def test_gradients_pass_through_the_merge(student, draw):
    heads, cotangent = draw(2, 3, 5, 4), draw(2, 5, 12)
    gradients_match(student, reference.merge_heads, heads, wrt=(0,), cotangents=(cotangent,))


@promise("merge_heads", DTYPE_STAYS)
def test_merging_keeps_the_dtype(student, draw):
    for dtype in PRECISIONS:
        matches(student, reference.merge_heads, draw(3, 2, 4, 5, dtype=dtype))


@promise("merge_heads", INPUTS_STAY)
def test_merging_leaves_its_input_alone(student, draw):
    left_alone(student, reference.merge_heads, draw(2, 4, 5, 3))


# multi_head_attention
# Here and below d_k is a square number in float64, so that √d_k is exact even if someone takes it in float32.

HEADS = 3


def drawn(draw, lq=5, lk=7, d_k=4, d_v=6, widths=(10, 10, 10), e_out=8, dtype=torch.float64):
    """xq, xk, xv, Wq, Wk, Wv, Wo for two sequences and three heads."""
    eq, ek, ev = widths
    inputs = draw(2, lq, eq), draw(2, lk, ek), draw(2, lk, ev)
    shapes = (HEADS * d_k, eq), (HEADS * d_k, ek), (HEADS * d_v, ev), (e_out, HEADS * d_v)
    return tuple(x.to(dtype) for x in (*inputs, *(draw(*shape, scale=shape[1] ** -0.5) for shape in shapes)))


@promise(
    "multi_head_attention",
    en="Textbook sizes, d_k = d_v = E/H: each head attends in its own slice, then the output matrix mixes the heads.",
    zh="教科书的尺寸，d_k = d_v = E/H：每个头在自己的切片里做注意力，最后由输出矩阵把各头混合。",
    weight=2,
)
def test_each_head_attends_on_its_own(student, draw):
    tensors = drawn(draw, lq=5, lk=5, d_k=4, d_v=4, widths=(12, 12, 12), e_out=12)
    matches(student, reference.multi_head_attention, *tensors, HEADS)


@promise(
    "multi_head_attention",
    en="d_v may differ from d_k, and the output may have any width.",
    zh="d_v 可以不同于 d_k，输出可以是任意宽度。",
)
def test_values_may_have_another_width(student, draw):
    matches(student, reference.multi_head_attention, *drawn(draw), HEADS)
    matches(student, reference.multi_head_attention, *drawn(draw, d_k=9, d_v=2, e_out=6), num_heads=HEADS)


@promise(
    "multi_head_attention",
    en="Keys and values may come from another sequence, of another length and width.",
    zh="键和值可以来自另一个序列，长度和宽度都可以不同。",
)
def test_keys_and_values_may_come_from_elsewhere(student, draw):
    matches(student, reference.multi_head_attention, *drawn(draw, lq=7, lk=5, widths=(10, 11, 13)), HEADS)


@promise(
    "multi_head_attention",
    en="The order of the heads does not matter, as long as all four matrices agree on it.",
    zh="头的先后无所谓，只要四个矩阵的顺序一致。",
)
def test_the_order_of_the_heads_does_not_matter(student, draw):
    *xs, Wq, Wk, Wv, Wo = drawn(draw)
    order = torch.tensor([2, 0, 1])
    moved = [W.view(HEADS, -1, W.shape[1])[order].flatten(0, 1) for W in (Wq, Wk, Wv)]
    moved.append(Wo.view(Wo.shape[0], HEADS, -1)[:, order].flatten(1))
    out, _ = matches(student, reference.multi_head_attention, *xs, *moved, HEADS)
    agree(out, multi_head_attention, *xs, Wq, Wk, Wv, Wo)


def multi_head_attention(*tensors):
    """The output alone."""
    return reference.multi_head_attention(*tensors, HEADS)[0]


@promise(
    "multi_head_attention",
    en="The mask says for each sequence and head which query may look at which key.",
    zh="掩码规定每个序列、每个头里，哪个查询可以看哪个键。",
)
def test_a_full_mask_is_obeyed(student, draw):
    matches(student, reference.multi_head_attention, *drawn(draw), HEADS, draw.mask(2, 3, 5, 7))


@promise(
    "multi_head_attention",
    en="A mask shared by sequences, heads or queries broadcasts.",
    zh="各序列、各头或各查询共用的掩码能正确广播。",
)
def test_a_shared_mask_is_broadcast(student, draw):
    tensors = drawn(draw)
    for shape in ((2, 1, 1, 7), (3, 1, 7), (5, 7)):
        matches(student, reference.multi_head_attention, *tensors, HEADS, mask=draw.mask(*shape))


@promise(
    "multi_head_attention",
    en="With as many tokens as heads, a [Lq, Lk] mask still applies to queries, not to heads.",
    zh="词元数恰好等于头数时，[Lq, Lk] 掩码说的仍是查询，而不是头。",
)
def test_a_mask_of_queries_is_not_taken_for_one_of_heads(student, draw):
    tensors = drawn(draw, lq=HEADS, lk=HEADS)
    matches(student, reference.multi_head_attention, *tensors, HEADS, triangle(HEADS))


@promise(
    "multi_head_attention",
    en="A query that may look nowhere has weights 0 and head outputs 0.",
    zh="哪里都不许看的查询，权重为 0，各头输出为 0。",
)
def test_a_blind_query_has_head_outputs_of_zero(student, draw):
    matches(student, reference.multi_head_attention, *drawn(draw), HEADS, blinded(draw.mask(2, 3, 5, 7)))


def blinded(mask):
    """One query sees nothing in any head, another nothing in one head."""
    mask[1, :, 2] = False
    mask[0, 1, 3] = False
    return mask


@promise("multi_head_attention", FORBIDDEN_SCORE_HAS_NO_EFFECT)
def test_a_huge_forbidden_score_is_not_seen(student, draw):
    xq, xk, *rest = drawn(draw)
    mask = draw.mask(2, 3, 5, 7)
    mask[..., 0], mask[..., 4] = False, True
    xk[:, 0] *= 1000
    matches(student, reference.multi_head_attention, xq, xk, *rest, HEADS, mask)


@promise(
    "multi_head_attention",
    en="Gradients of all inputs and matrices are right, and finite for queries that may look nowhere.",
    zh="所有输入和矩阵的梯度都正确；哪里都不许看的查询，梯度也是有限的。",
)
def test_gradients_reach_every_input_and_matrix(student, draw):
    cotangents = (draw(2, 5, 8), draw(2, 3, 5, 7))
    mask = blinded(draw.mask(2, 3, 5, 7))
    gradients_match(
        student, reference.multi_head_attention, *drawn(draw), HEADS, mask, wrt=range(7), cotangents=cotangents
    )


@promise("multi_head_attention", FLOAT32_AND_BFLOAT16)
def test_lower_precision(student, draw):
    for dtype in PRECISIONS:
        matches(student, reference.multi_head_attention, *drawn(draw, d_k=6, d_v=4, dtype=dtype), HEADS)


@promise(
    "multi_head_attention",
    en="Heads that do not divide the rows of Wq and Wk, or those of Wv, raise ValueError.",
    zh="头数不能整除 Wq、Wk 的行数，或不能整除 Wv 的行数时，抛出 ValueError。",
)
def test_attention_refuses_heads_that_do_not_divide(student, draw):
    xq, xk, xv, Wq, Wk, Wv, Wo = drawn(draw, d_k=4, d_v=6)
    refuses(student, "multi_head_attention", xq, xk, xv, Wq[:11].clone(), Wk[:11].clone(), Wv, Wo, HEADS)
    refuses(student, "multi_head_attention", xq, xk, xv, Wq, Wk, Wv[:16].clone(), Wo[:, :16].clone(), HEADS)
    matches(student, reference.multi_head_attention, xq, xk, xv, Wq, Wk, Wv, Wo, HEADS)


@promise("multi_head_attention", INPUTS_STAY)
def test_attention_leaves_its_inputs_alone(student, draw):
    left_alone(student, reference.multi_head_attention, *drawn(draw), HEADS, draw.mask(2, 3, 5, 7))


# SequenceFirstMHA


def sequence_first(student, draw, width=12, heads=3, dtype=torch.float64, **options) -> Loaded:
    return Loaded(student, draw, reference.SequenceFirstMHA, width, heads, dtype=dtype, **options)


def sequences(draw, tq=5, tk=7, batch=2, width=12, dtype=torch.float64):
    """query, key, value, sequence first."""
    return tuple(draw(t, batch, width, dtype=dtype) for t in (tq, tk, tk))


def padding(draw, batch, tk):
    """True on the keys to drop. The first key is real, the last is not."""
    mask = draw.mask(batch, tk, share=0.4)
    mask[:, 0], mask[:, -1] = False, True
    return mask


def looking(draw, tq, tk):
    """True where a query may look, and all may look at the first key."""
    mask = draw.mask(tq, tk)
    mask[:, 0] = True
    return mask


@promise(
    "SequenceFirstMHA",
    en="On [T, B, E] every position attends over the positions of its own sequence, in every head.",
    zh="输入为 [T, B, E] 时，每个头里的每个位置都对本序列的各个位置做注意力。",
    weight=2,
)
def test_positions_attend_over_positions(student, draw):
    sequence_first(student, draw).keeps(*sequences(draw, tq=5, tk=5))


@promise("SequenceFirstMHA", en="Queries and keys may have different lengths.", zh="查询与键的长度可以不同。")
def test_lengths_may_differ(student, draw):
    mha = sequence_first(student, draw)
    mha.keeps(*sequences(draw))
    mha.keeps(*sequences(draw, tq=6, tk=2, batch=5))


@promise("SequenceFirstMHA", NO_BIAS_ANYWHERE)
def test_without_bias_no_layer_has_one(student, draw):
    mha = sequence_first(student, draw, bias=False)
    for name in ("W_q", "W_k", "W_v", "W_o"):
        require(
            not mha.has_bias(name, draw),
            f"SequenceFirstMHA: with bias=False, {name} still has a bias",
            f"SequenceFirstMHA：bias=False 时，{name} 仍然有偏置",
        )
    mha.keeps(*sequences(draw))


@promise(
    "SequenceFirstMHA",
    en="key_padding_mask [B, Tk]: True drops the key, for every query and head of that sample.",
    zh="key_padding_mask [B, Tk]：True 表示丢弃这个键，对该样本的所有查询和头都有效。",
)
def test_padded_keys_are_dropped(student, draw):
    mha = sequence_first(student, draw)
    mha.keeps(*sequences(draw, tq=5, tk=5), key_padding_mask=padding(draw, 2, 5))
    mha.keeps(*sequences(draw), key_padding_mask=padding(draw, 2, 7))


@promise(
    "SequenceFirstMHA",
    en="attn_mask [Tq, Tk]: 0 drops, and row i is what query i may see.",
    zh="attn_mask [Tq, Tk]：0 表示丢弃，第 i 行是查询 i 能看到的。",
)
def test_the_attention_mask_drops_at_zero(student, draw):
    mha = sequence_first(student, draw)
    mha.keeps(*sequences(draw, tq=5, tk=5), attn_mask=triangle(5))
    mha.keeps(*sequences(draw), attn_mask=looking(draw, 5, 7))


@promise(
    "SequenceFirstMHA",
    en="attn_mask may have any dtype: bool, integer or floating point.",
    zh="attn_mask 可以是任意 dtype：布尔、整数或浮点。",
)
def test_the_attention_mask_may_have_any_dtype(student, draw):
    mha, inputs = sequence_first(student, draw), sequences(draw)
    for dtype in (torch.int64, torch.float32):
        mha.keeps(*inputs, attn_mask=looking(draw, 5, 7).to(dtype))


@promise(
    "SequenceFirstMHA",
    en="With both masks a key is seen only if both allow it.",
    zh="两种掩码同时给出时，两者都允许的键才看得到。",
)
def test_both_masks_act_together(student, draw):
    mha = sequence_first(student, draw)
    mha.keeps(*sequences(draw), key_padding_mask=padding(draw, 2, 7), attn_mask=looking(draw, 5, 7))


@promise(
    "SequenceFirstMHA",
    en="With as many samples or tokens as heads, the masks still apply to keys and never to heads.",
    zh="样本数或词元数恰好等于头数时，掩码遮的仍然是键，而不是头。",
)
def test_equal_sizes_do_not_confuse_the_axes(student, draw):
    mha, inputs = sequence_first(student, draw), sequences(draw, tq=3, tk=3)
    mha.keeps(*sequences(draw, batch=3), key_padding_mask=padding(draw, 3, 7))
    mha.keeps(*inputs, key_padding_mask=padding(draw, 2, 3))
    mha.keeps(*inputs, attn_mask=triangle(3))


@promise(
    "SequenceFirstMHA",
    en="A query that may look nowhere has head outputs 0: W_o turns them into its bias, not into NaN.",
    zh="哪里都不许看的查询，各头输出为 0：经过 W_o 得到它的偏置，而不是 NaN。",
)
def test_a_fully_padded_sample_stays_finite(student, draw):
    sequence_first(student, draw, width=8, heads=2).keeps(*sequences(draw, batch=3, width=8), **blinding(draw))


def blinding(draw):
    """Sample 1 has no key, query 2 may look at none, and for query 4 of sample 0 the two masks together leave none."""
    key_padding_mask, attn_mask = padding(draw, 3, 7), looking(draw, 5, 7)
    key_padding_mask[1] = True
    attn_mask[2] = False
    attn_mask[4] = key_padding_mask[0]
    return {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}


@promise(
    "SequenceFirstMHA",
    en="However large the score of a padded key is, it has no effect.",
    zh="被填充的键，分数再大也没有影响。",
)
def test_a_huge_padded_key_is_not_seen(student, draw):
    query, key, value = sequences(draw)
    key[-1] *= 1000
    sequence_first(student, draw).keeps(query, key, value, key_padding_mask=padding(draw, 2, 7))


@promise("SequenceFirstMHA", GRADIENTS_OF_ALL_LAYERS)
def test_gradients_reach_every_layer(student, draw):
    mha, inputs = sequence_first(student, draw, width=8, heads=2), sequences(draw, batch=3, width=8)
    masks, cotangents = blinding(draw), (draw(5, 3, 8),)
    mha.differentiates(*inputs, cotangents=cotangents, **masks)


@promise("SequenceFirstMHA", FLOAT32_AND_BFLOAT16)
def test_the_module_in_lower_precision(student, draw):
    for dtype in PRECISIONS:
        mha = sequence_first(student, draw, width=10, heads=2, dtype=dtype)
        mha.keeps(*sequences(draw, batch=3, width=10, dtype=dtype), key_padding_mask=padding(draw, 3, 7))


@promise("SequenceFirstMHA", HEADS_MUST_DIVIDE_THE_WIDTH)
def test_the_module_refuses_heads_that_do_not_divide(student, draw):
    inputs = sequences(draw, width=10, dtype=torch.float32)
    what = {"en": "heads that do not divide the width", "zh": "头数不能整除宽度"}
    require_refused(student, "SequenceFirstMHA", 10, 4, inputs=inputs, **what)
    sequence_first(student, draw).keeps(*sequences(draw))


@promise("SequenceFirstMHA", INPUTS_STAY_IN_TRAINING_TOO)
def test_the_module_leaves_its_inputs_alone(student, draw):
    mha, inputs = sequence_first(student, draw), sequences(draw)
    masks = {"key_padding_mask": padding(draw, 2, 7), "attn_mask": looking(draw, 5, 7).double()}
    mha.leaves_alone(*inputs, **masks)
