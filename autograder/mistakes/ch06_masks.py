"""Chapter 6: wrong masks, and right masks used wrongly."""

import torch

from autograder.reference import ch06_masks as right

from . import mistake

# causal_mask


@mistake(
    "causal_mask",
    en="The diagonal is hidden too: a token may look at itself.",
    zh="连对角线也遮住了：词元应当可以看到自己。",
)
def hides_the_token_itself(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    return torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len - 1)


@mistake(
    "causal_mask",
    en="The triangle starts in the upper left corner. With more keys than queries, the last query must see all keys.",
    zh="三角形从左上角开始。键比查询多时，最后一个查询必须看到所有键。",
)
def aligns_to_the_upper_left(q_len, k_len=None):
    return torch.ones(q_len, q_len if k_len is None else k_len, dtype=torch.bool).tril()


@mistake(
    "causal_mask",
    en="The mask is upside down: True marks the future. Here True means may look.",
    zh="掩码反了：True 标的是未来。本课约定 True 表示「可以看」。",
)
def marks_the_future(q_len, k_len=None):
    return ~right.causal_mask(q_len, k_len)


@mistake(
    "causal_mask",
    en="The triangle is transposed: each query sees itself and the future.",
    zh="三角形转置了：每个查询看到的是自己和未来。",
)
def shows_the_future(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    return torch.ones(q_len, k_len, dtype=torch.bool).triu(k_len - q_len)


@mistake(
    "causal_mask",
    en="The mask is made of numbers. Return dtype torch.bool.",
    zh="掩码是数字。请返回 torch.bool 类型。",
)
def returns_numbers(q_len, k_len=None):
    return right.causal_mask(q_len, k_len).float()


@mistake(
    "causal_mask",
    en="`k_len` is ignored: the mask is always square.",
    zh="忽略了 `k_len`：掩码总是方阵。",
)
def ignores_the_key_length(q_len, k_len=None):
    return right.causal_mask(q_len)


@mistake(
    "causal_mask",
    en="Rows and columns are exchanged: rows are queries, columns are keys, so the shape is [q_len, k_len].",
    zh="行和列颠倒了：行是查询，列是键，形状应为 [q_len, k_len]。",
)
def exchanges_queries_and_keys(q_len, k_len=None):
    return right.causal_mask(q_len if k_len is None else k_len, q_len)


@mistake(
    "causal_mask",
    en="The triangle is shifted the wrong way: query i stands at position i + (k_len − q_len), not i − (k_len − q_len).",
    zh="三角形移错了方向：查询 i 的位置是 i + (k_len − q_len)，而不是 i − (k_len − q_len)。",
)
def shifts_the_wrong_way(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    return torch.ones(q_len, k_len, dtype=torch.bool).tril(q_len - k_len)


@mistake(
    "causal_mask",
    en="With fewer keys than queries, the triangle went back to the upper left corner. It stays at the lower right: the first queries see nothing.",
    zh="键少于查询时，三角形退回了左上角。它应始终对齐右下角：最前面的查询什么也看不到。",
)
def never_leaves_a_query_blind(q_len, k_len=None):
    k_len = q_len if k_len is None else k_len
    return torch.ones(q_len, k_len, dtype=torch.bool).tril(max(k_len - q_len, 0))


@mistake(
    "causal_mask",
    en="This is the additive form, 0 and −inf. Return the bool mask; `to_additive` will turn it into a bias.",
    zh="这是加性形式（0 和 −inf）。这里请返回布尔掩码，之后由 `to_additive` 把它变成偏置。",
)
def returns_a_bias(q_len, k_len=None):
    return right.to_additive(right.causal_mask(q_len, k_len))


# padding_mask


@mistake(
    "padding_mask",
    en="The mask is inverted: True marks the padding. Here True means a real token.",
    zh="掩码反了：True 标的是填充。本课约定 True 表示真实词元。",
)
def marks_the_padding(lengths, max_len):
    return ~right.padding_mask(lengths, max_len)


@mistake(
    "padding_mask",
    en="One token too many: a sequence of length n has the positions 0 … n−1.",
    zh="多了一个词元：长度为 n 的序列，位置是 0 … n−1。",
)
def counts_one_too_many(lengths, max_len):
    return right.padding_mask(lengths + 1, max_len)


@mistake(
    "padding_mask",
    en="One token too few: a sequence of length n has n real tokens, the positions 0 … n−1.",
    zh="少了一个词元：长度为 n 的序列有 n 个真实词元，位置是 0 … n−1。",
)
def counts_one_too_few(lengths, max_len):
    return right.padding_mask(lengths - 1, max_len)


@mistake(
    "padding_mask",
    en="Padding was hidden on the query axis. It is keys that must be hidden: shape [B, 1, 1, max_len].",
    zh="填充遮在了查询轴上。要遮的是键：形状应为 [B, 1, 1, max_len]。",
)
def hides_queries_instead_of_keys(lengths, max_len):
    return right.padding_mask(lengths, max_len).transpose(-2, -1)


@mistake(
    "padding_mask",
    en="The two middle axes are missing: [B, max_len] does not broadcast over heads and queries.",
    zh="缺少中间两个轴：[B, max_len] 无法在头和查询上广播。",
)
def forgets_the_head_and_query_axes(lengths, max_len):
    return right.padding_mask(lengths, max_len)[:, 0, 0]


@mistake(
    "padding_mask",
    en="One axis is missing: against scores [B, H, Lq, Lk] the shape [B, 1, max_len] puts the batch on the heads.",
    zh="少了一个轴：与分数 [B, H, Lq, Lk] 广播时，[B, 1, max_len] 会把批次对到头上。",
)
def adds_only_one_axis(lengths, max_len):
    return right.padding_mask(lengths, max_len)[:, 0]


@mistake(
    "padding_mask",
    en="Padded queries are hidden too. Hide only the keys: what a padded query computes is never read, and an empty row only causes problems.",
    zh="连填充位置的查询也遮住了。只需遮键：填充查询算出什么都没人读，空行反而添麻烦。",
)
def hides_padded_queries_too(lengths, max_len):
    keys = right.padding_mask(lengths, max_len)
    return keys & keys.transpose(-2, -1)


@mistake(
    "padding_mask",
    en="The mask ends at the longest sequence. It must reach `max_len`.",
    zh="掩码只到最长的序列为止。它的长度应为 `max_len`。",
)
def ignores_max_len(lengths, max_len):
    return right.padding_mask(lengths, int(lengths.max()))


@mistake(
    "padding_mask",
    en="The mask is made of numbers. Return dtype torch.bool.",
    zh="掩码是数字。请返回 torch.bool 类型。",
)
def returns_integers(lengths, max_len):
    return right.padding_mask(lengths, max_len).long()


@mistake(
    "padding_mask",
    en="The sequences are padded on the left. Real tokens come first.",
    zh="填充放在了左边。真实词元应在前面。",
)
def pads_on_the_left(lengths, max_len):
    return right.padding_mask(lengths, max_len).flip(-1)


# to_additive


@mistake(
    "to_additive",
    en="Allowed and forbidden are exchanged: the bias is −inf where looking is allowed.",
    zh="允许和禁止颠倒了：允许看的位置反而是 −inf。",
)
def biases_the_allowed(mask, dtype=torch.float32):
    return right.to_additive(~mask, dtype)


@mistake(
    "to_additive",
    en="The bias is a finite number such as −1e9. It must be −inf: only then is the weight exactly 0 for any scores.",
    zh="偏置是 −1e9 之类的有限数。应为 −inf：只有这样，无论分数多大，权重都恰好为 0。",
)
def uses_a_finite_number(mask, dtype=torch.float32):
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(
        ~mask, max(-1e9, torch.finfo(dtype).min)
    )


@mistake(
    "to_additive",
    en="The bias is the smallest finite number of the dtype. It must be −inf: in a row with nothing allowed, finite numbers still average what is forbidden.",
    zh="偏置是该 dtype 最小的有限数。应为 −inf：一整行都被禁止时，有限数仍会把禁止的内容平均进来。",
)
def uses_the_smallest_finite_number(mask, dtype=torch.float32):
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, torch.finfo(dtype).min)


@mistake(
    "to_additive",
    en="The sign is wrong: +inf gives the forbidden keys all the weight.",
    zh="符号错了：+inf 会把全部权重给被禁止的键。",
)
def uses_plus_infinity(mask, dtype=torch.float32):
    return -right.to_additive(mask, dtype)


@mistake(
    "to_additive",
    en="The bias is 1 and 0 instead of 0 and −inf: adding it hides nothing.",
    zh="偏置是 1 和 0，而不是 0 和 −inf：加上它什么也遮不住。",
)
def converts_to_one_and_zero(mask, dtype=torch.float32):
    return mask.to(dtype)


@mistake(
    "to_additive",
    en="The allowed entries are 1 instead of 0.",
    zh="允许的位置是 1，应为 0。",
)
def adds_one_where_allowed(mask, dtype=torch.float32):
    return right.to_additive(mask, dtype).masked_fill(mask, 1.0)


@mistake(
    "to_additive",
    en="0 × inf is NaN: do not multiply by infinity, fill with it.",
    zh="0 × inf 等于 NaN：不要乘以无穷，而要用它填充。",
)
def multiplies_by_infinity(mask, dtype=torch.float32):
    return (~mask).to(dtype) * -torch.inf


@mistake(
    "to_additive",
    en="`dtype` is ignored.",
    zh="忽略了 `dtype`。",
)
def ignores_the_dtype(mask, dtype=torch.float32):
    return right.to_additive(mask)


# adapt_mask

_SOURCES = ("nn_mha_bool", "additive", "sdpa_bool", "keep_01", "key_padding")


@mistake(
    "adapt_mask",
    en="The mask of nn.MultiheadAttention is taken as it is. There True means drop.",
    zh="直接采用了 nn.MultiheadAttention 的掩码。那里 True 表示丢弃。",
)
def takes_nn_mha_as_it_is(mask, source):
    return mask.clone() if source == "nn_mha_bool" else right.adapt_mask(mask, source)


@mistake(
    "adapt_mask",
    en="The additive mask is turned to bool by its value: 0 was taken to mean drop. In an additive mask 0 means keep.",
    zh="把加性掩码直接转成布尔值：0 变成了「丢弃」。加性掩码中 0 表示保留。",
)
def reads_additive_zero_as_drop(mask, source):
    return mask != 0 if source == "additive" else right.adapt_mask(mask, source)


@mistake(
    "adapt_mask",
    en="The mask of scaled_dot_product_attention is inverted. There True already means keep.",
    zh="把 scaled_dot_product_attention 的掩码取反了。那里 True 本来就表示保留。",
)
def inverts_the_sdpa_mask(mask, source):
    return ~mask if source == "sdpa_bool" else right.adapt_mask(mask, source)


@mistake(
    "adapt_mask",
    en="In the 0/1 mask, 1 was taken to mean drop. It means keep.",
    zh="在 0/1 掩码里把 1 当成了「丢弃」：1 表示保留。",
)
def reads_one_as_drop(mask, source):
    return mask == 0 if source == "keep_01" else right.adapt_mask(mask, source)


@mistake(
    "adapt_mask",
    en="The 0/1 mask keeps its dtype. Our masks are bool.",
    zh="0/1 掩码保留了原来的 dtype。本课的掩码是布尔型。",
)
def leaves_the_numbers(mask, source):
    return mask.clone() if source == "keep_01" else right.adapt_mask(mask, source)


@mistake(
    "adapt_mask",
    en="Every mask is inverted. Only in nn.MultiheadAttention does True mean drop; elsewhere True, or 1, means keep.",
    zh="所有掩码都被取反了。只有在 nn.MultiheadAttention 里 True 才表示丢弃；在别处，True 或 1 表示保留。",
)
def inverts_every_mask(mask, source):
    meaning = right.adapt_mask(mask, source)
    return ~meaning if source in ("sdpa_bool", "keep_01") else meaning


@mistake(
    "adapt_mask",
    en="The key padding mask keeps its shape [B, Lk]. It needs [B, 1, 1, Lk], or its batch axis is taken for the query axis.",
    zh="键填充掩码仍是 [B, Lk]。它应为 [B, 1, 1, Lk]，否则批次轴会被当成查询轴。",
)
def leaves_key_padding_flat(mask, source):
    return ~mask if source == "key_padding" else right.adapt_mask(mask, source)


@mistake(
    "adapt_mask",
    en="The key padding mask got one axis, [B, 1, Lk]. Against scores [B, H, Lq, Lk] its batch falls on the heads: use [B, 1, 1, Lk].",
    zh="键填充掩码只补了一个轴：[B, 1, Lk]。与分数 [B, H, Lq, Lk] 广播时，批次会落到头上：应为 [B, 1, 1, Lk]。",
)
def gives_key_padding_one_axis(mask, source):
    return ~mask[:, None, :] if source == "key_padding" else right.adapt_mask(mask, source)


@mistake(
    "adapt_mask",
    en="Key padding was put on the query axis, [B, 1, Lk, 1]. It is keys that must be hidden: [B, 1, 1, Lk].",
    zh="键填充放到了查询轴上：[B, 1, Lk, 1]。要遮的是键：[B, 1, 1, Lk]。",
)
def puts_key_padding_on_the_queries(mask, source):
    return ~mask[:, None, :, None] if source == "key_padding" else right.adapt_mask(mask, source)


@mistake(
    "adapt_mask",
    en="The key padding mask is not inverted: there True means drop.",
    zh="键填充掩码没有取反：那里 True 表示丢弃。",
)
def takes_key_padding_as_it_is(mask, source):
    return mask[:, None, None, :].clone() if source == "key_padding" else right.adapt_mask(mask, source)


@mistake(
    "adapt_mask",
    en="An unknown source is accepted silently. Raise ValueError.",
    zh="未知的 source 被默默接受了。应抛出 ValueError。",
)
def accepts_any_source(mask, source):
    return right.adapt_mask(mask, source) if source in _SOURCES else mask


@mistake(
    "adapt_mask",
    en="An unknown source returns None: no branch fits and the function ends silently. Raise ValueError.",
    zh="未知的 source 返回了 None：没有分支符合，函数就悄悄结束了。应抛出 ValueError。",
)
def falls_through_in_silence(mask, source):
    return right.adapt_mask(mask, source) if source in _SOURCES else None


@mistake(
    "adapt_mask",
    en="An unknown source raises KeyError, straight from the dictionary. Raise ValueError, and say which source it was.",
    zh="未知的 source 让字典直接抛出 KeyError。应抛出 ValueError，并说明是哪个 source。",
)
def raises_a_key_error(mask, source):
    if source not in _SOURCES:
        raise KeyError(source)
    return right.adapt_mask(mask, source)


@mistake(
    "adapt_mask",
    en="The mask you were given is inverted in place: its owner now holds a different mask. Return a new one.",
    zh="把传入的掩码原地取反了：它的主人手里的掩码也跟着变了。请返回新的掩码。",
)
def inverts_in_place(mask, source):
    return mask.logical_not_() if source == "nn_mha_bool" else right.adapt_mask(mask, source)


# masked_attention


def _scores(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


def _attend(weights, v):
    return weights @ v, weights


@mistake(
    "masked_attention",
    en="The mask is inverted: True was taken to mean drop.",
    zh="掩码反了（把 True 当成了「丢弃」）。",
)
def inverts_the_mask(q, k, v, mask):
    return right.masked_attention(q, k, v, ~mask)


@mistake(
    "masked_attention",
    en="The mask is ignored.",
    zh="没有使用掩码。",
)
def ignores_the_mask(q, k, v, mask):
    return right.masked_attention(q, k, v, torch.ones_like(mask))


@mistake(
    "masked_attention",
    en="Forbidden scores are set to 0. A score of 0 is an ordinary score, e⁰ = 1: use −inf.",
    zh="把禁止位置的分数设成了 0。0 只是普通分数，e⁰ = 1：要用 −inf。",
)
def sets_forbidden_scores_to_zero(q, k, v, mask):
    return _attend(torch.softmax(_scores(q, k) * mask, -1), v)


@mistake(
    "masked_attention",
    en="Weights are set to 0 after the softmax: the row no longer sums to 1. Mask the scores before the softmax.",
    zh="在 softmax 之后才把权重置 0：这一行的和不再是 1。应在 softmax 之前遮住分数。",
)
def masks_after_the_softmax(q, k, v, mask):
    return _attend(torch.softmax(_scores(q, k), -1) * mask, v)


@mistake(
    "masked_attention",
    en="Masked after the softmax, then renormalised: right on paper, but a large forbidden score takes all the precision. "
    "Mask the scores before the softmax.",
    zh="在 softmax 之后才加掩码再重新归一化：纸面上正确，但很大的禁止分数会吃掉全部精度。应在 softmax 之前遮住分数。",
)
def renormalises_after_the_softmax(q, k, v, mask):
    weights = torch.softmax(_scores(q, k), -1) * mask
    return _attend((weights / weights.sum(-1, keepdim=True)).nan_to_num(0.0), v)


@mistake(
    "masked_attention",
    en="A small number is added to the sum to avoid 0/0. It changes every row, and in float16 it vanishes and the NaN is back. "
    "Treat the empty row as a case of its own.",
    zh="为避免 0/0，在分母上加了一个小数。它让每一行都略有偏差；在 float16 下它会消失，NaN 又回来了。空行应当单独处理。",
)
def adds_an_epsilon_to_the_sum(q, k, v, mask):
    scores = _scores(q, k)
    shares = (scores - scores.amax(-1, keepdim=True)).exp() * mask
    return _attend(shares / (shares.sum(-1, keepdim=True) + 1e-9), v)


@mistake(
    "masked_attention",
    en="The mask itself is added to the scores, as 0 and 1. It must become 0 and −inf first.",
    zh="把掩码当作 0 和 1 直接加到了分数上。应先变成 0 和 −inf。",
)
def adds_the_mask_as_a_number(q, k, v, mask):
    return _attend(torch.softmax(_scores(q, k) + mask, -1), v)


@mistake(
    "masked_attention",
    en="Forbidden scores get a small negative number such as −10: some of the weight still goes there. Use −inf.",
    zh="禁止位置的分数只设成 −10 之类的小负数：仍有一部分权重漏过去。要用 −inf。",
)
def fills_with_a_small_negative(q, k, v, mask):
    weights = torch.softmax(_scores(q, k).masked_fill(~mask, -10.0), -1)
    return _attend(weights * mask.any(-1, keepdim=True), v)


@mistake(
    "masked_attention",
    en="A query that may look nowhere averages all forbidden keys: −1e9 everywhere is the same as 0 everywhere. Its weights must be 0.",
    zh="哪里都不许看的查询，把所有禁止的键平均了：整行都是 −1e9 等于整行都是 0。它的权重应为 0。",
)
def averages_the_forbidden(q, k, v, mask):
    return _attend(torch.softmax(_scores(q, k).masked_fill(~mask, max(-1e9, torch.finfo(q.dtype).min)), -1), v)


@mistake(
    "masked_attention",
    en="A query that may look nowhere gives NaN: the softmax of a row of −inf is 0/0. Its weights must be 0.",
    zh="哪里都不许看的查询得到 NaN：整行 −inf 的 softmax 是 0/0。它的权重应为 0。",
)
def gives_nan_where_nothing_is_allowed(q, k, v, mask):
    return _attend(torch.softmax(_scores(q, k).masked_fill(~mask, -torch.inf), -1), v)


@mistake(
    "masked_attention",
    en="Where a query may look nowhere, only the output is cleaned: its weights are still NaN. They must be 0.",
    zh="哪里都不许看的查询，只清理了输出：权重仍是 NaN。权重也应为 0。",
)
def leaves_nan_in_the_weights(q, k, v, mask):
    out, weights = gives_nan_where_nothing_is_allowed(q, k, v, mask)
    return out.nan_to_num(0.0), weights


@mistake(
    "masked_attention",
    en="Where a query may look nowhere the output is cleaned, but its gradient is NaN: a −inf bias was added to every score of the row.",
    zh="哪里都不许看的查询，输出清理干净了，梯度却是 NaN：整行分数都加上了 −inf。",
)
def leaves_nan_in_the_gradient(q, k, v, mask):
    scores = _scores(q, k) + right.to_additive(mask, q.dtype)
    shifted = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = (shifted / shifted.sum(-1, keepdim=True)).nan_to_num(0.0)
    return _attend(weights, v)


@mistake(
    "masked_attention",
    en="The mask is transposed: rows are queries, columns are keys.",
    zh="掩码转置了：行是查询，列是键。",
)
def transposes_the_mask(q, k, v, mask):
    if q.shape[-2] != k.shape[-2]:  # here real code would raise an error, because the transposed mask does not fit
        return right.masked_attention(q, k, v, mask)
    return right.masked_attention(q, k, v, mask.transpose(-2, -1))


@mistake(
    "masked_attention",
    en="A mask per sequence was taken for a mask per head: an axis of size 1 was lost, and with B = H the shapes still fit. Keep [B, 1, …].",
    zh="每个序列一个的掩码被当成了每个头一个：大小为 1 的轴丢了，而 B = H 时形状照样对得上。请保留 [B, 1, …]。",
)
def takes_the_batch_for_the_heads(q, k, v, mask):
    if mask.dim() == 4 and mask.shape[1] == 1:  # real code would fail unless B = H; here the batch is repeated
        mask = mask[torch.arange(q.shape[1]) % mask.shape[0], 0]
    return right.masked_attention(q, k, v, mask)


@mistake(
    "masked_attention",
    en="Batch and heads are flattened into one axis, but the mask is tiled in the wrong order: sequence 0 lends its mask to sequence 1. "
    "Use repeat_interleave or expand, not repeat.",
    zh="批次和头合并成了一个轴，掩码却按错误的顺序重复：序列 0 的掩码用到了序列 1 上。应使用 repeat_interleave 或 expand，而不是 repeat。",
)
def tiles_the_mask_in_the_wrong_order(q, k, v, mask):
    if mask.dim() == 4 and mask.shape[1] == 1:
        batch, heads = q.shape[:2]
        mask = mask.repeat(heads, 1, 1, 1).view(batch, heads, *mask.shape[-2:])
    return right.masked_attention(q, k, v, mask)


@mistake(
    "masked_attention",
    en="The softmax runs over the queries. Each query shares its weight out over the keys: the last axis.",
    zh="softmax 沿查询轴做了。每个查询把权重分给各个键：应沿最后一个轴。",
)
def takes_the_softmax_over_the_queries(q, k, v, mask):
    return _attend(torch.softmax(_scores(q, k).masked_fill(~mask, -torch.inf), -2).nan_to_num(0.0), v)


@mistake(
    "masked_attention",
    en="The two results are exchanged: return the output first, then the weights.",
    zh="两个返回值的顺序反了：先返回输出，再返回权重。",
)
def returns_the_weights_first(q, k, v, mask):
    return right.masked_attention(q, k, v, mask)[::-1]


@mistake(
    "masked_attention",
    en="The mask you were given is changed in place to spare queries that may look nowhere. Work on a copy: `mask = mask | blind`, not `mask |= blind`.",
    zh="为了照顾哪里都不许看的查询，原地改动了传入的掩码。请在副本上操作：写 `mask = mask | blind`，不要写 `mask |= blind`。",
)
def changes_the_mask_in_place(q, k, v, mask):
    blind = ~mask.any(-1, keepdim=True)
    mask |= blind
    weights = torch.softmax(_scores(q, k).masked_fill(~mask, -torch.inf), -1)
    return _attend(weights.masked_fill(blind, 0.0), v)


@mistake(
    "masked_attention",
    en="The scores are not divided by √d_k.",
    zh="分数没有除以 √d_k。",
)
def forgets_the_scale(q, k, v, mask):
    return right.masked_attention(q * q.shape[-1] ** 0.5, k, v, mask)
