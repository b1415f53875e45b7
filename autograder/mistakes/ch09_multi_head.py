"""Chapter 9: heads cut, mixed, masked and glued the wrong way."""

import math

import torch

from autograder.reference import ch09_multi_head as right

from . import mistake

# split_heads


def _refuse_as_the_reference_does(function, *args):
    """Raise what the right function raises on these arguments. Its result is thrown away."""
    function(*args)


@mistake(
    "split_heads",
    en="One view straight to [B, H, L, d] has the right shape and the wrong content: it cuts through tokens. "
    "View to [B, L, H, d] first, then exchange axes 1 and 2.",
    zh="直接 view 成 [B, H, L, d]，形状对，内容错：它把词元切断了。应先 view 成 [B, L, H, d]，再交换第 1、2 轴。",
)
def views_straight_into_heads(x, num_heads):
    batch, length, width = x.shape
    _refuse_as_the_reference_does(right.split_heads, x, num_heads)
    return x.reshape(batch, num_heads, length, width // num_heads)


@mistake(
    "split_heads",
    en="The features are dealt out in turn: head h got h, h + H, h + 2H … It should get d neighbours. View to [B, L, H, d], not [B, L, d, H].",
    zh="特征被轮流分给各头：第 h 个头拿到 h、h + H、h + 2H ……它应拿到相邻的 d 个。要 view 成 [B, L, H, d]，而不是 [B, L, d, H]。",
)
def deals_the_features_out_in_turn(x, num_heads):
    _refuse_as_the_reference_does(right.split_heads, x, num_heads)
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


@mistake(
    "split_heads",
    en="The head axis still comes after the positions, [B, L, H, d]: attention would then run over heads. Exchange axes 1 and 2.",
    zh="头的轴还在位置之后，形状是 [B, L, H, d]：这样注意力会在头之间进行。请交换第 1、2 轴。",
)
def leaves_the_heads_behind_the_positions(x, num_heads):
    return right.split_heads(x, num_heads).transpose(1, 2)


@mistake(
    "split_heads",
    en="The head axis was put before the batch: [H, B, L, d]. It should be [B, H, L, d].",
    zh="头的轴放到了批次之前：[H, B, L, d]。应为 [B, H, L, d]。",
)
def puts_the_heads_before_the_batch(x, num_heads):
    return right.split_heads(x, num_heads).transpose(0, 1)


@mistake(
    "split_heads",
    en="The last two axes are exchanged: [B, H, d, L]. Positions come before features.",
    zh="最后两个轴反了：[B, H, d, L]。位置应在特征之前。",
)
def puts_the_features_before_the_positions(x, num_heads):
    return right.split_heads(x, num_heads).transpose(2, 3)


@mistake(
    "split_heads",
    en="The first axis was taken for the sequence, so the result is [L, H, B, d]. Here the batch comes first.",
    zh="把第 0 轴当成了序列，结果是 [L, H, B, d]。本课批次在前。",
)
def takes_the_batch_for_the_sequence(x, num_heads):
    return right.split_heads(x.transpose(0, 1), num_heads)


@mistake(
    "split_heads",
    en="There is no check that the heads divide the width; the error comes from somewhere inside torch. Raise ValueError yourself.",
    zh="没有检查头数能否整除宽度，错误来自 torch 内部。请自己抛出 ValueError。",
)
def forgets_to_check_the_split(x, num_heads):
    batch, length, width = x.shape
    return x.reshape(batch, length, num_heads, width // num_heads).transpose(1, 2)


@mistake(
    "split_heads",
    en="`assert` raises AssertionError, and vanishes under `python -O`. Write `raise ValueError(...)`.",
    zh="`assert` 抛出的是 AssertionError，而且在 `python -O` 下会消失。请写 `raise ValueError(...)`。",
)
def asserts_that_the_split_works(x, num_heads):
    assert x.shape[-1] % num_heads == 0
    return right.split_heads(x, num_heads)


@mistake(
    "split_heads",
    en="When the heads do not divide the width, the features left over are dropped silently. Raise ValueError.",
    zh="头数不能整除宽度时，多出的特征被悄悄丢掉了。应抛出 ValueError。",
)
def drops_the_features_left_over(x, num_heads):
    width = x.shape[-1] // num_heads
    return right.split_heads(x[..., : num_heads * width], num_heads)


# merge_heads


@mistake(
    "merge_heads",
    en="Reshaped without exchanging axes 1 and 2 first: the shape is right, but each row holds pieces of several tokens.",
    zh="没有先交换第 1、2 轴就 reshape：形状对，但每一行里混进了好几个词元的片段。",
)
def merges_without_exchanging_axes(x):
    batch, heads, length, width = x.shape
    return x.reshape(batch, length, heads * width)


@mistake(
    "merge_heads",
    en="Batch and heads were exchanged instead of heads and positions. That line belongs to another layout: it runs here and scrambles everything.",
    zh="交换的是批次和头，而不是头和位置。这一行属于另一种布局：在这里能运行，却把内容全打乱了。",
)
def exchanges_batch_and_heads(x):
    batch, heads, length, width = x.shape
    return x.transpose(0, 1).reshape(batch, length, heads * width)


@mistake(
    "merge_heads",
    en="The features of the heads are interleaved: H must be the slower of the two last axes, [B, L, H, D], before they become one.",
    zh="各头的特征被交错排列了：合并之前应为 [B, L, H, D]，H 在 D 之前。",
)
def interleaves_the_features(x):
    return x.permute(0, 2, 3, 1).flatten(2)


@mistake(
    "merge_heads",
    en="`view` cannot flatten a transposed tensor. Use `reshape`, or `.contiguous().view(...)`.",
    zh="`view` 不能展平转置过的张量。请用 `reshape`，或 `.contiguous().view(...)`。",
)
def views_a_transposed_tensor(x):
    batch, heads, length, width = x.shape
    return x.transpose(1, 2).view(batch, length, heads * width)


@mistake(
    "merge_heads",
    en="The heads are put one after another along the sequence, [B, H·L, D]. They belong side by side in the features.",
    zh="各头沿序列首尾相接，成了 [B, H·L, D]。它们应在特征轴上并排。",
)
def joins_along_the_sequence(x):
    return x.flatten(1, 2)


@mistake(
    "merge_heads",
    en="The heads are averaged. Concatenate them: H·D features, nothing added up.",
    zh="把各头取了平均。应当拼接：共 H·D 个特征，不做相加。",
)
def averages_instead_of_joining(x):
    return x.mean(1)


@mistake(
    "merge_heads",
    en="The heads are added up. Concatenate them: H·D features, nothing added up.",
    zh="把各头加了起来。应当拼接：共 H·D 个特征，不做相加。",
)
def adds_instead_of_joining(x):
    return x.sum(1)


@mistake(
    "merge_heads",
    en="The axes are in order, but the heads are still apart: [B, L, H, D]. Make the last two axes one.",
    zh="轴的次序对了，但各头还分开着：[B, L, H, D]。请把最后两个轴合成一个。",
)
def leaves_the_heads_apart(x):
    return x.transpose(1, 2)


@mistake(
    "merge_heads",
    en="The sequence came out first, [L, B, H·D]. Here the batch comes first.",
    zh="结果里序列在前：[L, B, H·D]。本课批次在前。",
)
def returns_the_sequence_first(x):
    return right.merge_heads(x).transpose(0, 1)


# multi_head_attention


def _project(xq, xk, xv, Wq, Wk, Wv, num_heads):
    return [right.split_heads(x @ W.T, num_heads) for x, W in ((xq, Wq), (xk, Wk), (xv, Wv))]


def _scores(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


def _finish(weights, v, Wo):
    return right.merge_heads(weights @ v) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="The heads were left on axis 2, [B, L, H, d]: every position attends over its own heads, and nothing moves between positions.",
    zh="头还留在第 2 轴，[B, L, H, d]：每个位置只在自己的各头之间做注意力，位置之间没有任何信息流动。",
)
def attends_over_the_heads(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = (x.transpose(1, 2) for x in _project(xq, xk, xv, Wq, Wk, Wv, num_heads))
    heads, weights = right.attend(q, k, v, mask)
    return heads.flatten(2) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="The projections are viewed straight into [B, H, L, d]. That cuts through tokens: view to [B, L, H, d], then exchange axes 1 and 2.",
    zh="投影直接 view 成 [B, H, L, d]，把词元切断了：应先 view 成 [B, L, H, d]，再交换第 1、2 轴。",
)
def views_the_projections_straight_into_heads(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = _project(xq, xk, xv, Wq, Wk, Wv, num_heads)
    q, k, v = (views_straight_into_heads(right.merge_heads(x), num_heads) for x in (q, k, v))
    heads, weights = right.attend(q, k, v, mask)
    return right.merge_heads(heads) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="The heads are merged without exchanging axes 1 and 2: the rows that reach Wo hold pieces of several tokens.",
    zh="合并各头时没有先交换第 1、2 轴：送进 Wo 的每一行都混着好几个词元的片段。",
)
def merges_before_exchanging_axes(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    heads, weights = right.attend(*_project(xq, xk, xv, Wq, Wk, Wv, num_heads), mask)
    return merges_without_exchanging_axes(heads) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="When merging, batch and heads were exchanged instead of heads and positions: the shape survives, the content is scrambled.",
    zh="合并时交换的是批次和头，而不是头和位置：形状没变，内容却全乱了。",
)
def merges_batch_with_heads(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    heads, weights = right.attend(*_project(xq, xk, xv, Wq, Wk, Wv, num_heads), mask)
    return exchanges_batch_and_heads(heads) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="The features are dealt out to the heads in turn. Head h owns the rows h·d … h·d + d − 1 of Wq: split to [B, L, H, d], not [B, L, d, H].",
    zh="特征被轮流分给各头。Wq 的第 h·d … h·d + d − 1 行属于第 h 个头：应拆成 [B, L, H, d]，而不是 [B, L, d, H]。",
)
def deals_the_projections_out_in_turn(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = _project(xq, xk, xv, Wq, Wk, Wv, num_heads)
    q, k, v = (deals_the_features_out_in_turn(right.merge_heads(x), num_heads) for x in (q, k, v))
    heads, weights = right.attend(q, k, v, mask)
    return right.merge_heads(heads) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="The scores are divided by the root of the whole width. Each head computes dot products of length d_k: divide by √d_k.",
    zh="分数除以了整个宽度的平方根。每个头的点积只有 d_k 项：应除以 √d_k。",
)
def scales_by_the_whole_width(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    return right.multi_head_attention(xq, xk, xv, Wq / math.sqrt(num_heads), Wk, Wv, Wo, num_heads, mask)


@mistake(
    "multi_head_attention",
    en="The scores are not divided by √d_k.",
    zh="分数没有除以 √d_k。",
)
def forgets_the_scale(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    _refuse_as_the_reference_does(right.multi_head_attention, xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask)
    return right.multi_head_attention(xq, xk, xv, Wq * math.sqrt(Wq.shape[0] // num_heads), Wk, Wv, Wo, num_heads, mask)


@mistake(
    "multi_head_attention",
    en="The scores are divided by √d_v. What is multiplied is queries and keys: divide by √d_k.",
    zh="分数除以了 √d_v。相乘的是查询和键：应除以 √d_k。",
)
def scales_by_the_width_of_the_values(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    _refuse_as_the_reference_does(right.multi_head_attention, xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask)
    return right.multi_head_attention(
        xq, xk, xv, Wq * math.sqrt(Wq.shape[0] / Wv.shape[0]), Wk, Wv, Wo, num_heads, mask
    )


@mistake(
    "multi_head_attention",
    en="The output matrix Wo is never used: the heads are joined, but not mixed.",
    zh="没有用到输出矩阵 Wo：各头只是拼接，没有混合。",
)
def skips_the_output_matrix(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    heads, weights = right.attend(*_project(xq, xk, xv, Wq, Wk, Wv, num_heads), mask)
    return right.merge_heads(heads), weights


@mistake(
    "multi_head_attention",
    en="All heads use the first head's rows of Wq, Wk and Wv, so they all say the same. Each head has its own rows.",
    zh="所有头都用了第一个头在 Wq、Wk、Wv 里的那些行，于是各头都一样。每个头有自己的行。",
)
def gives_all_heads_the_same_weights(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = (x[:, :1].expand_as(x) for x in _project(xq, xk, xv, Wq, Wk, Wv, num_heads))
    heads, weights = right.attend(q, k, v, mask)
    return right.merge_heads(heads) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="The outputs of the heads are averaged before Wo. Concatenate them: Wo decides how they are mixed.",
    zh="在 Wo 之前把各头的输出取了平均。应当拼接：怎样混合由 Wo 决定。",
)
def averages_the_heads(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    heads, weights = right.attend(*_project(xq, xk, xv, Wq, Wk, Wv, num_heads), mask)
    return right.merge_heads(heads.mean(1, keepdim=True).expand_as(heads)) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="The weights are averaged over the heads. Return them for each head: [B, H, Lq, Lk].",
    zh="返回的权重对各头取了平均。应返回每个头的权重：[B, H, Lq, Lk]。",
)
def averages_the_weights(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    out, weights = right.multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask)
    return out, weights.mean(1)


@mistake(
    "multi_head_attention",
    en="The input is split before it is projected, so a head sees only its own slice of the token. Project the whole token, then split.",
    zh="先拆输入再投影，于是每个头只看到词元的一小段。应先用整个词元做投影，再拆头。",
)
def splits_before_projecting(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    _refuse_as_the_reference_does(_project, xq, xk, xv, Wq, Wk, Wv, num_heads)

    def own_slice(x, W):
        blocks = W.view(num_heads, W.shape[0] // num_heads, num_heads, -1).diagonal(dim1=0, dim2=2)
        return torch.einsum("bhle,deh->bhld", x.unflatten(-1, (num_heads, -1)).transpose(1, 2), blocks)

    heads, weights = right.attend(own_slice(xq, Wq), own_slice(xk, Wk), own_slice(xv, Wv), mask)
    return right.merge_heads(heads) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="The matrices are applied as x @ W. They are [out, in], as in nn.Linear: x @ W.T.",
    zh="矩阵按 x @ W 使用了。它们与 nn.Linear 一样是 [out, in]：应为 x @ W.T。",
)
def forgets_to_transpose_the_weights(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    _refuse_as_the_reference_does(right.multi_head_attention, xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask)
    return right.multi_head_attention(xq, xk, xv, Wq.T, Wk.T, Wv.T, Wo.T, num_heads, mask)


@mistake(
    "multi_head_attention",
    en="Axis 0 was taken for the sequence: each token attends to the same position in the other samples. The batch comes first.",
    zh="把第 0 轴当成了序列：每个词元看的是其他样本的同一位置。本课批次在前。",
)
def attends_over_the_batch(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    _refuse_as_the_reference_does(right.multi_head_attention, xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask)
    xq, xk, xv = (x.transpose(0, 1) for x in (xq, xk, xv))
    out, weights = right.multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask)
    return out.transpose(0, 1), weights


@mistake(
    "multi_head_attention",
    en="The softmax runs over the queries: columns sum to 1 instead of rows. Take it over the keys, the last axis.",
    zh="softmax 做在了查询轴上：和为 1 的是列而不是行。应对键，也就是最后一个轴做。",
)
def normalises_over_the_queries(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = _project(xq, xk, xv, Wq, Wk, Wv, num_heads)
    return _finish(_softmax(_scores(q, k), mask, -2), v, Wo)


@mistake(
    "multi_head_attention",
    en="The softmax runs over the heads (axis 1). Take it over the keys, the last axis.",
    zh="softmax 做在了头的轴（第 1 轴）上。应对键，也就是最后一个轴做。",
)
def normalises_over_the_heads(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = _project(xq, xk, xv, Wq, Wk, Wv, num_heads)
    return _finish(_softmax(_scores(q, k), mask, 1), v, Wo)


def _softmax(scores, mask, dim):
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim).nan_to_num(0.0)


@mistake(
    "multi_head_attention",
    en="Keys and values are made from xq: xk and xv are never looked at.",
    zh="键和值都是从 xq 算出来的：没有用到 xk 和 xv。",
)
def looks_only_at_the_queries(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    _refuse_as_the_reference_does(right.split_heads, xv @ Wv.T, num_heads)
    return right.multi_head_attention(xq, xq, xq, Wq, Wk, Wv, Wo, num_heads, mask)


@mistake(
    "multi_head_attention",
    en="The values are made from xk. They are xv @ Wv.T.",
    zh="值是从 xk 算出来的。应为 xv @ Wv.T。",
)
def takes_the_values_from_the_keys(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    _refuse_as_the_reference_does(right.split_heads, xv @ Wv.T, num_heads)
    return right.multi_head_attention(xq, xk, xk, Wq, Wk, Wv, Wo, num_heads, mask)


@mistake(
    "multi_head_attention",
    en="The values are split with d_k, which fails as soon as d_v differs. Take d_v from the rows of Wv: Wv.shape[0] // num_heads.",
    zh="用 d_k 去拆值，d_v 一不同就出错。d_v 应由 Wv 的行数得到：Wv.shape[0] // num_heads。",
)
def assumes_values_as_wide_as_keys(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = _project(xq, xk, xv, Wq, Wk, Wv, num_heads)
    v = (xv @ Wv.T).view(*xv.shape[:2], num_heads, q.shape[-1]).transpose(1, 2)
    heads, weights = right.attend(q, k, v, mask)
    return right.merge_heads(heads) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="Only the output is returned. Return (out, weights).",
    zh="只返回了输出。应返回 (out, weights)。",
)
def returns_only_the_output(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    return right.multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask)[0]


@mistake(
    "multi_head_attention",
    en="There is no check that the heads divide; the error comes from somewhere inside torch. Raise ValueError yourself.",
    zh="没有检查头数能否整除，错误来自 torch 内部。请自己抛出 ValueError。",
)
def forgets_to_check_the_heads(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = (forgets_to_check_the_split(x @ W.T, num_heads) for x, W in ((xq, Wq), (xk, Wk), (xv, Wv)))
    heads, weights = right.attend(q, k, v, mask)
    return right.merge_heads(heads) @ Wo.T, weights


@mistake(
    "multi_head_attention",
    en="`assert` raises AssertionError, and vanishes under `python -O`. Write `raise ValueError(...)`.",
    zh="`assert` 抛出的是 AssertionError，而且在 `python -O` 下会消失。请写 `raise ValueError(...)`。",
)
def asserts_that_the_heads_divide(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    assert Wq.shape[0] % num_heads == 0
    assert Wv.shape[0] % num_heads == 0
    return right.multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask)


@mistake(
    "multi_head_attention",
    en="The mask is inverted: True was taken to mean drop.",
    zh="掩码反了（把 True 当成了「丢弃」）。",
)
def inverts_the_mask(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    mask = None if mask is None else ~mask
    return right.multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask)


@mistake(
    "multi_head_attention",
    en="The mask is ignored.",
    zh="没有使用掩码。",
)
def ignores_the_mask(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    return right.multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads)


@mistake(
    "multi_head_attention",
    en="The mask always gets an extra axis 1. It broadcasts by itself; with as many queries as heads, a [Lq, Lk] mask now gives each head another row.",
    zh="总是给掩码在第 1 轴加一维。它本来就能广播；当查询数等于头数时，[Lq, Lk] 掩码就变成每个头用其中一行了。",
)
def gives_the_mask_another_axis(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    mask = mask if mask is None or mask.dim() == 4 else mask.unsqueeze(1)
    return right.multi_head_attention(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask)


@mistake(
    "multi_head_attention",
    en="Weights are set to 0 after the softmax: the row no longer sums to 1. Mask the scores before the softmax.",
    zh="在 softmax 之后才把权重置 0：这一行的和不再是 1。应在 softmax 之前遮住分数。",
)
def masks_after_the_softmax(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = _project(xq, xk, xv, Wq, Wk, Wv, num_heads)
    return _finish(torch.softmax(_scores(q, k), -1) * (1 if mask is None else mask), v, Wo)


@mistake(
    "multi_head_attention",
    en="Masked after the softmax, then renormalised: right on paper, but a large forbidden score takes all the precision. "
    "Mask the scores before the softmax.",
    zh="在 softmax 之后才加掩码再重新归一化：纸面上正确，但很大的禁止分数会吃掉全部精度。应在 softmax 之前遮住分数。",
)
def renormalises_after_the_softmax(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = _project(xq, xk, xv, Wq, Wk, Wv, num_heads)
    weights = torch.softmax(_scores(q, k), -1) * (1 if mask is None else mask)
    return _finish((weights / weights.sum(-1, keepdim=True)).nan_to_num(0.0), v, Wo)


@mistake(
    "multi_head_attention",
    en="A query that may look nowhere averages all forbidden keys: −1e9 everywhere is the same as 0 everywhere. Its weights must be 0.",
    zh="哪里都不许看的查询，把所有禁止的键平均了：整行都是 −1e9 等于整行都是 0。它的权重应为 0。",
)
def averages_the_forbidden(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = _project(xq, xk, xv, Wq, Wk, Wv, num_heads)
    scores = _scores(q, k) if mask is None else _scores(q, k).masked_fill(~mask, -1e9)
    return _finish(torch.softmax(scores, -1), v, Wo)


@mistake(
    "multi_head_attention",
    en="A query that may look nowhere gives NaN: the softmax of a row of −inf is 0/0. Its weights must be 0.",
    zh="哪里都不许看的查询得到 NaN：整行 −inf 的 softmax 是 0/0。它的权重应为 0。",
)
def gives_nan_where_nothing_is_allowed(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = _project(xq, xk, xv, Wq, Wk, Wv, num_heads)
    scores = _scores(q, k) if mask is None else _scores(q, k).masked_fill(~mask, -torch.inf)
    return _finish(torch.softmax(scores, -1), v, Wo)


@mistake(
    "multi_head_attention",
    en="Where a query may look nowhere the output is cleaned, but its gradient is NaN: a −inf bias was added to every score of the row.",
    zh="哪里都不许看的查询，输出清理干净了，梯度却是 NaN：整行分数都加上了 −inf。",
)
def leaves_nan_in_the_gradient(xq, xk, xv, Wq, Wk, Wv, Wo, num_heads, mask=None):
    q, k, v = _project(xq, xk, xv, Wq, Wk, Wv, num_heads)
    scores = _scores(q, k)
    if mask is not None:
        scores = scores + torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -torch.inf)
    return _finish(torch.softmax(scores, -1).nan_to_num(0.0), v, Wo)


# SequenceFirstMHA


class _Steps(right.SequenceFirstMHA):
    """The right module taken apart, so that a mistake can replace one step."""

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        q, k, v = self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(self.W_v(value))
        heads = self.attend(q, k, v, self.allowed(key_padding_mask, attn_mask))
        return self.W_o(self.merge(heads))

    def split(self, x):
        return right.split_heads(x.transpose(0, 1), self.num_heads)

    def attend(self, q, k, v, mask):
        return right.attend(q, k, v, mask)[0]

    def merge(self, heads):
        return right.merge_heads(heads).transpose(0, 1)


@mistake(
    "SequenceFirstMHA",
    en="The heads were left on axis 2, [B, T, H, D]: every position attends over its own heads, and nothing moves between positions. "
    "Bring [T, B, H, D] to [B, H, T, D] with permute(1, 2, 0, 3).",
    zh="头还留在第 2 轴，[B, T, H, D]：每个位置只在自己的各头之间做注意力，位置之间没有任何信息流动。"
    "应当用 permute(1, 2, 0, 3) 把 [T, B, H, D] 变成 [B, H, T, D]。",
)
class AttendsOverTheHeads(_Steps):
    def split(self, x):
        return super().split(x).transpose(1, 2)

    def merge(self, heads):
        return heads.transpose(0, 1).flatten(2)


@mistake(
    "SequenceFirstMHA",
    en="The heads are right, but the last step still exchanges batch and heads: the shape survives, the content is scrambled. "
    "From [B, H, T, D] go to [T, B, H, D] with permute(2, 0, 1, 3).",
    zh="拆头对了，但最后一步仍在交换批次和头：形状没变，内容却全乱了。应当用 permute(2, 0, 1, 3) 把 [B, H, T, D] 变成 [T, B, H, D]。",
)
class ScramblesTheHeadsAtTheEnd(_Steps):
    def merge(self, heads):
        batch, number, length, width = heads.shape
        return heads.transpose(0, 1).reshape(length, batch, number * width)


@mistake(
    "SequenceFirstMHA",
    en="[T, B, E] is viewed straight into [B, H, T, D]: right shape, wrong content. View to [T, B, H, D], then permute.",
    zh="把 [T, B, E] 直接 view 成 [B, H, T, D]：形状对，内容错。应先 view 成 [T, B, H, D]，再 permute。",
)
class ViewsStraightIntoHeads(_Steps):
    def split(self, x):
        length, batch, width = x.shape
        return x.reshape(batch, self.num_heads, length, width // self.num_heads)


@mistake(
    "SequenceFirstMHA",
    en="The input was taken as [B, T, E], so samples attend to each other. Here it is [T, B, E].",
    zh="把输入当成了 [B, T, E]，于是样本之间互相看。这里是 [T, B, E]。",
)
class TakesTheBatchFirst(_Steps):
    def split(self, x):
        return right.split_heads(x, self.num_heads)

    def merge(self, heads):
        return right.merge_heads(heads)


@mistake(
    "SequenceFirstMHA",
    en="The result is [B, T, E]. Give back what you were given: [T, B, E].",
    zh="结果是 [B, T, E]。输入是什么布局就还什么布局：[T, B, E]。",
)
class ReturnsTheBatchFirst(_Steps):
    def merge(self, heads):
        return right.merge_heads(heads)


@mistake(
    "SequenceFirstMHA",
    en="The features are dealt out to the heads in turn: view to [T, B, H, D], not [T, B, D, H].",
    zh="特征被轮流分给各头：应 view 成 [T, B, H, D]，而不是 [T, B, D, H]。",
)
class DealsTheFeaturesOutInTurn(_Steps):
    def split(self, x):
        return x.unflatten(-1, (-1, self.num_heads)).permute(1, 3, 0, 2)


@mistake(
    "SequenceFirstMHA",
    en="The scores are not divided by √D, the root of the head's width.",
    zh="分数没有除以 √D（每个头宽度的平方根）。",
)
class ForgetsTheScale(_Steps):
    def attend(self, q, k, v, mask):
        return super().attend(q * math.sqrt(q.shape[-1]), k, v, mask)


@mistake(
    "SequenceFirstMHA",
    en="The scores are divided by √embed_dim. A head's dot product has only embed_dim / num_heads terms: divide by the root of that.",
    zh="分数除以了 √embed_dim。一个头的点积只有 embed_dim / num_heads 项：应除以它的平方根。",
)
class ScalesByTheWholeWidth(_Steps):
    def attend(self, q, k, v, mask):
        return super().attend(q / math.sqrt(self.num_heads), k, v, mask)


@mistake(
    "SequenceFirstMHA",
    en="The softmax runs over the queries. Take it over the keys, the last axis.",
    zh="softmax 做在了查询轴上。应对键，也就是最后一个轴做。",
)
class NormalisesOverTheQueries(_Steps):
    def attend(self, q, k, v, mask):
        return _softmax(_scores(q, k), mask, -2) @ v


@mistake(
    "SequenceFirstMHA",
    en="W_o is never used: the heads are joined, but not mixed.",
    zh="没有用到 W_o：各头只是拼接，没有混合。",
)
class SkipsTheOutputLayer(_Steps):
    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        q, k, v = self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(self.W_v(value))
        return self.merge(self.attend(q, k, v, self.allowed(key_padding_mask, attn_mask)))


@mistake(
    "SequenceFirstMHA",
    en="Keys and values are both made from `key`. The values are W_v(value).",
    zh="键和值都是从 `key` 算出来的。值应为 W_v(value)。",
)
class TakesTheValuesFromTheKeys(_Steps):
    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        return super().forward(query, key, key, key_padding_mask, attn_mask)


@mistake(
    "SequenceFirstMHA",
    en="The length of the queries is used for the keys too: it fails as soon as Tk differs from Tq. Read Tk from key.shape[0].",
    zh="把查询的长度也用在了键上：Tk 与 Tq 一不同就出错。Tk 应取自 key.shape[0]。",
)
class AssumesEqualLengths(_Steps):
    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        key, value = key.view(query.shape), value.view(query.shape)
        return super().forward(query, key, value, key_padding_mask, attn_mask)


@mistake(
    "SequenceFirstMHA",
    en="A pair is returned. Return the output alone.",
    zh="返回了一对值。只需返回输出。",
)
class ReturnsTheWeightsToo(_Steps):
    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        q, k, v = self.split(self.W_q(query)), self.split(self.W_k(key)), self.split(self.W_v(value))
        heads, weights = right.attend(q, k, v, self.allowed(key_padding_mask, attn_mask))
        return self.W_o(self.merge(heads)), weights


@mistake(
    "SequenceFirstMHA",
    en="`bias=False` is ignored: the layers still have biases. Pass `bias` to every nn.Linear.",
    zh="忽略了 `bias=False`：各层照样有偏置。请把 `bias` 传给每个 nn.Linear。",
)
class IgnoresTheBiasArgument(_Steps):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__(embed_dim, num_heads)


@mistake(
    "SequenceFirstMHA",
    en="The layers never have a bias. `bias=True`, the default, means that all four have one.",
    zh="各层始终没有偏置。默认 `bias=True`，表示四层都有偏置。",
)
class NeverHasABias(_Steps):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__(embed_dim, num_heads, bias=False)


@mistake(
    "SequenceFirstMHA",
    en="There is no check that the heads divide embed_dim; the error comes from somewhere inside torch. Raise ValueError yourself.",
    zh="没有检查头数能否整除 embed_dim，错误来自 torch 内部。请自己抛出 ValueError。",
)
class ForgetsToCheckTheHeads(_Steps):
    def __init__(self, embed_dim, num_heads, bias=True):
        super().__init__(embed_dim, 1, bias)
        self.num_heads = num_heads

    def split(self, x):
        length, batch, width = x.shape
        return x.view(length, batch, self.num_heads, width // self.num_heads).permute(1, 2, 0, 3)


@mistake(
    "SequenceFirstMHA",
    en="`assert` raises AssertionError, and vanishes under `python -O`. Write `raise ValueError(...)`.",
    zh="`assert` 抛出的是 AssertionError，而且在 `python -O` 下会消失。请写 `raise ValueError(...)`。",
)
class AssertsThatTheHeadsDivide(_Steps):
    def __init__(self, embed_dim, num_heads, bias=True):
        assert embed_dim % num_heads == 0
        super().__init__(embed_dim, num_heads, bias)


@mistake(
    "SequenceFirstMHA",
    en="key_padding_mask is inverted: here True means drop.",
    zh="key_padding_mask 反了：这里 True 表示丢弃。",
)
class KeepsThePadding(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        return super().allowed(None if key_padding_mask is None else ~key_padding_mask, attn_mask)


@mistake(
    "SequenceFirstMHA",
    en="key_padding_mask is ignored: padding is attended to.",
    zh="没有使用 key_padding_mask：填充也被看到了。",
)
class IgnoresThePadding(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        return super().allowed(None, attn_mask)


@mistake(
    "SequenceFirstMHA",
    en="Padding was hidden on the query axis. It is keys that must be dropped: key_padding_mask[:, None, None, :].",
    zh="填充遮在了查询轴上。要丢弃的是键：key_padding_mask[:, None, None, :]。",
)
class HidesQueriesInsteadOfKeys(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        mask = super().allowed(None, attn_mask)
        if key_padding_mask is not None:
            real = ~key_padding_mask[:, None, :, None]
            mask = real if mask is None else mask & real
        return mask


@mistake(
    "SequenceFirstMHA",
    en="key_padding_mask got one axis too few: [B, 1, Tk] lines B up with the heads. It needs [B, 1, 1, Tk].",
    zh="key_padding_mask 少加了一个轴：[B, 1, Tk] 会让 B 与头对齐。应为 [B, 1, 1, Tk]。",
)
class DropsPaddingPerHead(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        mask = super().allowed(None, attn_mask)
        if key_padding_mask is not None:
            real = ~key_padding_mask[:, None, :]
            mask = real if mask is None else mask & real
        return mask


@mistake(
    "SequenceFirstMHA",
    en="attn_mask is inverted: here 0 means drop and anything else keep. (nn.MultiheadAttention has it the other way round.)",
    zh="attn_mask 反了：这里 0 表示丢弃，其余表示保留。（nn.MultiheadAttention 恰好相反。）",
)
class KeepsWhereTheMaskIsZero(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        return super().allowed(key_padding_mask, None if attn_mask is None else attn_mask == 0)


@mistake(
    "SequenceFirstMHA",
    en="attn_mask is ignored: every query sees every key.",
    zh="没有使用 attn_mask：每个查询都看到了所有键。",
)
class IgnoresTheAttentionMask(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        return super().allowed(key_padding_mask, None)


@mistake(
    "SequenceFirstMHA",
    en="attn_mask is added to the scores. It is not an additive mask: 0 means drop, so fill with −inf where it is 0.",
    zh="把 attn_mask 加到了分数上。它不是加性掩码：0 表示丢弃，应在它为 0 的位置填 −inf。",
)
class AddsTheAttentionMask(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        return super().allowed(key_padding_mask, None), attn_mask

    def attend(self, q, k, v, mask):
        mask, bias = mask
        scores = _scores(q, k) if bias is None else _scores(q, k) + bias.to(q.dtype)
        return _softmax(scores, mask, -1) @ v


@mistake(
    "SequenceFirstMHA",
    en="attn_mask works only as bool. It may have any dtype: compare it with 0.",
    zh="attn_mask 只有是布尔型时才能用。它可以是任意 dtype：请与 0 比较。",
)
class TakesOnlyBoolMasks(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        if attn_mask is not None and attn_mask.dtype != torch.bool:
            raise RuntimeError("masked_fill_ only supports boolean masks")
        return super().allowed(key_padding_mask, attn_mask)


@mistake(
    "SequenceFirstMHA",
    en="attn_mask is transposed: rows are queries, columns are keys.",
    zh="attn_mask 转置了：行是查询，列是键。",
)
class TransposesTheAttentionMask(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        return super().allowed(key_padding_mask, None if attn_mask is None else attn_mask.T)


@mistake(
    "SequenceFirstMHA",
    en="attn_mask got an extra axis in the middle, [Tq, 1, Tk]: with as many tokens as heads each head gets another row. [Tq, Tk] broadcasts by itself.",
    zh="attn_mask 中间多加了一个轴，成了 [Tq, 1, Tk]：词元数等于头数时，每个头会用其中一行。[Tq, Tk] 本来就能广播。",
)
class GivesEachHeadARowOfTheMask(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        return super().allowed(key_padding_mask, None if attn_mask is None else attn_mask[:, None])


@mistake(
    "SequenceFirstMHA",
    en="When both masks are given only key_padding_mask is used. A key must be allowed by both.",
    zh="两种掩码同时给出时只用了 key_padding_mask。两者都允许的键才能看。",
)
class UsesOneMaskOfTwo(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        return super().allowed(key_padding_mask, attn_mask if key_padding_mask is None else None)


@mistake(
    "SequenceFirstMHA",
    en="The two masks are joined by `or`: a key that one of them drops is still seen. Join them by `and`.",
    zh="两种掩码用「或」合并了：只被其中一个丢弃的键仍能看到。应当用「与」合并。",
)
class LetsEitherMaskAllow(_Steps):
    def allowed(self, key_padding_mask, attn_mask):
        if key_padding_mask is None or attn_mask is None:
            return super().allowed(key_padding_mask, attn_mask)
        return super().allowed(key_padding_mask, None) | super().allowed(None, attn_mask)


@mistake(
    "SequenceFirstMHA",
    en="Weights are set to 0 after the softmax: the row no longer sums to 1. Mask the scores before the softmax.",
    zh="在 softmax 之后才把权重置 0：这一行的和不再是 1。应在 softmax 之前遮住分数。",
)
class MasksAfterTheSoftmax(_Steps):
    def attend(self, q, k, v, mask):
        return (torch.softmax(_scores(q, k), -1) * (1 if mask is None else mask)) @ v


@mistake(
    "SequenceFirstMHA",
    en="Masked after the softmax, then renormalised: right on paper, but a large dropped score takes all the precision. "
    "Mask the scores before the softmax.",
    zh="在 softmax 之后才加掩码再重新归一化：纸面上正确，但被丢弃的分数很大时会吃掉全部精度。应在 softmax 之前遮住分数。",
)
class RenormalisesAfterTheSoftmax(_Steps):
    def attend(self, q, k, v, mask):
        weights = torch.softmax(_scores(q, k), -1) * (1 if mask is None else mask)
        return (weights / weights.sum(-1, keepdim=True)).nan_to_num(0.0) @ v


@mistake(
    "SequenceFirstMHA",
    en="A query that may look nowhere averages the padding: −1e9 everywhere is the same as 0 everywhere. Its heads must give 0.",
    zh="哪里都不许看的查询，把填充平均了：整行都是 −1e9 等于整行都是 0。它的各头应输出 0。",
)
class AveragesThePadding(_Steps):
    def attend(self, q, k, v, mask):
        scores = _scores(q, k) if mask is None else _scores(q, k).masked_fill(~mask, -1e9)
        return torch.softmax(scores, -1) @ v


@mistake(
    "SequenceFirstMHA",
    en="A query that may look nowhere gives NaN: the softmax of a row of −inf is 0/0. Its heads must give 0.",
    zh="哪里都不许看的查询得到 NaN：整行 −inf 的 softmax 是 0/0。它的各头应输出 0。",
)
class GivesNanWhereNothingIsAllowed(_Steps):
    def attend(self, q, k, v, mask):
        scores = _scores(q, k) if mask is None else _scores(q, k).masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, -1) @ v


@mistake(
    "SequenceFirstMHA",
    en="NaN is cleaned away only after W_o, so a query that may look nowhere loses the bias of W_o. Clean the weights, before they meet the values.",
    zh="到 W_o 之后才清除 NaN，于是哪里都不许看的查询丢掉了 W_o 的偏置。应在权重乘以值之前清理。",
)
class CleansUpAfterTheOutputLayer(GivesNanWhereNothingIsAllowed):
    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        return super().forward(query, key, value, key_padding_mask, attn_mask).nan_to_num(0.0)


@mistake(
    "SequenceFirstMHA",
    en="Where a query may look nowhere the output is clean, but its gradient is NaN: a −inf bias was added to every score of the row.",
    zh="哪里都不许看的查询，输出是干净的，梯度却是 NaN：整行分数都加上了 −inf。",
)
class LeavesNanInTheGradient(_Steps):
    def attend(self, q, k, v, mask):
        scores = _scores(q, k)
        if mask is not None:
            scores = scores + torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, -1).nan_to_num(0.0) @ v
