"""Chapter 2: tokens projected wrongly, mixed wrongly, and parameters counted wrongly."""

import torch

from autograder.reference import ch02_query_key_value as right

from . import mistake

# project_qkv


def _plus(y, bias):
    return y if bias is None else y + bias


@mistake(
    "project_qkv",
    en="The weights are not transposed. They are stored as [out, in], like nn.Linear: multiply by W.T.",
    zh="权重没有转置。它们像 nn.Linear 那样按 [out, in] 存放：要乘以 W.T。",
)
def forgets_to_transpose(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return _plus(x @ Wq, bq), _plus(x @ Wk, bk), _plus(x @ Wv, bv)


@mistake(
    "project_qkv",
    en="The tokens are in columns, as in W x. In this course each token is a row: x W.T.",
    zh="词元排成了列（W x 的写法）。本课里每个词元是一行：x W.T。",
)
def leaves_the_tokens_in_columns(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return tuple(y.mT for y in right.project_qkv(x, Wq, Wk, Wv, bq, bk, bv))


@mistake(
    "project_qkv",
    en="One bias serves all three projections. q, k and v have a bias each: bq, bk, bv.",
    zh="三个投影用了同一个偏置。q、k、v 各有自己的偏置：bq、bk、bv。",
)
def uses_one_bias_for_three(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return right.project_qkv(x, Wq, Wk, Wv, bq, bq, bq)


@mistake(
    "project_qkv",
    en="The biases are ignored.",
    zh="没有加偏置。",
)
def ignores_the_biases(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return right.project_qkv(x, Wq, Wk, Wv)


@mistake(
    "project_qkv",
    en="The key bias is left out. Softmax will cancel it later, but it is part of k.",
    zh="漏掉了键的偏置。softmax 之后会把它抵消，但它仍是 k 的一部分。",
)
def leaves_out_the_key_bias(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return right.project_qkv(x, Wq, Wk, Wv, bq, None, bv)


@mistake(
    "project_qkv",
    en="The biases are added only when all three are given. Each may be missing by itself.",
    zh="三个偏置都给了才加。每个偏置都可以单独缺。",
)
def adds_the_biases_only_together(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    if bq is None or bk is None or bv is None:
        return right.project_qkv(x, Wq, Wk, Wv)
    return right.project_qkv(x, Wq, Wk, Wv, bq, bk, bv)


@mistake(
    "project_qkv",
    en="None is added as if it were a bias. Ask first: `if bias is not None`.",
    zh="把 None 当成偏置加了上去。先判断：`if bias is not None`。",
)
def adds_none(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return x @ Wq.mT + bq, x @ Wk.mT + bk, x @ Wv.mT + bv


@mistake(
    "project_qkv",
    en="A tensor has no truth value: not `if bias`, but `if bias is not None`.",
    zh="张量没有真假：不要写 `if bias`，要写 `if bias is not None`。",
)
def asks_whether_a_bias_is_true(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return right.project_qkv(x, Wq, Wk, Wv, bq or None, bk or None, bv or None)


@mistake(
    "project_qkv",
    en="The bias is added to x before the product. It belongs to the result: x W.T + b.",
    zh="偏置在相乘之前就加到了 x 上。它应加在结果上：x W.T + b。",
)
def adds_the_bias_before_the_product(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return _plus(x, bq) @ Wq.mT, _plus(x, bk) @ Wk.mT, _plus(x, bv) @ Wv.mT


@mistake(
    "project_qkv",
    en="Query and key are exchanged: return (q, k, v).",
    zh="查询和键颠倒了：返回顺序是 (q, k, v)。",
)
def exchanges_query_and_key(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return right.project_qkv(x, Wk, Wq, Wv, bk, bq, bv)


@mistake(
    "project_qkv",
    en="The values are x itself. They are projected too, by Wv.",
    zh="值直接用了 x。值也要投影，用 Wv。",
)
def leaves_the_values_unprojected(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    q, k, _ = right.project_qkv(x, Wq, Wk, Wv, bq, bk, bv)
    return q, k, x


@mistake(
    "project_qkv",
    en="The keys are made with Wq. They have a matrix of their own, Wk.",
    zh="键是用 Wq 算的。键有自己的矩阵 Wk。",
)
def makes_keys_with_the_query_matrix(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return right.project_qkv(x, Wq, Wq, Wv, bq, bk, bv)


@mistake(
    "project_qkv",
    en="The projections follow one another: k was made from q, and v from k. All three are made from x.",
    zh="三个投影串了起来：k 由 q 算出，v 又由 k 算出。三者都应由 x 算出。",
)
def projects_the_projection(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    q = _plus(x @ Wq.mT, bq)
    k = _plus(q @ Wk.mT, bk)
    return q, k, _plus(k @ Wv.mT, bv)


@mistake(
    "project_qkv",
    en="The input is split before the projection: q sees one third of the features, k another, v the last. Each projection reads the whole of x.",
    zh="先切分输入再投影：q 只看到三分之一的特征，k 看另外三分之一，v 看剩下的。每个投影都应读整个 x。",
)
def splits_the_input_before_projecting(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    (a, b, c), (Wa, _, _) = x.chunk(3, -1), Wq.chunk(3, -1)
    return _plus(a @ Wa.mT, bq), _plus(b @ Wk.chunk(3, -1)[1].mT, bk), _plus(c @ Wv.chunk(3, -1)[2].mT, bv)


@mistake(
    "project_qkv",
    en="x is cut into three, one piece each for q, k and v, so the matrices no longer fit. Give the whole of x to each of them.",
    zh="把 x 切成三份分给 q、k、v，于是和矩阵的形状对不上。三个投影拿到的都应是整个 x。",
)
def cuts_the_input_in_three(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    a, b, c = x.chunk(3, -1)
    return _plus(a @ Wq.mT, bq), _plus(b @ Wk.mT, bk), _plus(c @ Wv.mT, bv)


@mistake(
    "project_qkv",
    en="The packed projection is cut into three equal parts. The values may be wider or narrower than queries and keys.",
    zh="合在一起的投影被切成了三等份。值的宽度可以和查询、键不同。",
)
def cuts_the_packed_result_in_equal_parts(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return torch.cat(right.project_qkv(x, Wq, Wk, Wv, bq, bk, bv), -1).chunk(3, -1)


@mistake(
    "project_qkv",
    en="q, k and v come back as one tensor. Return a tuple of three.",
    zh="q、k、v 合成一个张量返回了。请返回三个张量的元组。",
)
def returns_one_tensor(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return torch.cat(right.project_qkv(x, Wq, Wk, Wv, bq, bk, bv), -1)


@mistake(
    "project_qkv",
    en="The leading axes were flattened and not restored: q must be [..., n, d_k].",
    zh="前面的轴被展平后没有还原：q 的形状应为 [..., n, d_k]。",
)
def forgets_to_restore_the_axes(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return right.project_qkv(x.reshape(-1, x.shape[-1]), Wq, Wk, Wv, bq, bk, bv)


@mistake(
    "project_qkv",
    en="The queries are already divided by √d_k. That belongs to the scores, in the next chapter.",
    zh="查询已经除以了 √d_k。那一步属于分数，是下一章的事。",
)
def scales_the_queries_already(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    q, k, v = right.project_qkv(x, Wq, Wk, Wv, bq, bk, bv)
    return q / q.shape[-1] ** 0.5, k, v


@mistake(
    "project_qkv",
    en="q, k and v went through a softmax. A projection is linear; the softmax comes later, on the scores q·k.",
    zh="q、k、v 经过了 softmax。投影是线性的；softmax 在后面，作用于分数 q·k。",
)
def takes_the_softmax_of_the_projections(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return tuple(y.softmax(-1) for y in right.project_qkv(x, Wq, Wk, Wv, bq, bk, bv))


@mistake(
    "project_qkv",
    en="The weights are taken out of the graph (`.data`, `.detach()`, `no_grad`): they will never learn.",
    zh="权重脱离了计算图（`.data`、`.detach()`、`no_grad`）：它们永远学不到东西。",
)
def takes_the_weights_as_constants(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return right.project_qkv(x, Wq.detach(), Wk.detach(), Wv.detach(), bq, bk, bv)


@mistake(
    "project_qkv",
    en="Everything is turned into float32. Keep the dtype of the inputs.",
    zh="全都转成了 float32。请保持输入的 dtype。",
)
def turns_everything_into_float32(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return tuple(y.float() for y in right.project_qkv(x, Wq, Wk, Wv, bq, bk, bv))


@mistake(
    "project_qkv",
    en="The weights are transposed in place: their owner now holds another matrix. Use `.T`, not `.t_()`.",
    zh="把权重原地转置了：它的主人手里的矩阵也跟着变了。用 `.T`，不要用 `.t_()`。",
)
def transposes_in_place(x, Wq, Wk, Wv, bq=None, bk=None, bv=None):
    return _plus(x @ Wq.t_(), bq), _plus(x @ Wk.t_(), bk), _plus(x @ Wv.t_(), bv)


# fixed_mixing


@mistake(
    "fixed_mixing",
    en="The softmax is missing: the rows of M are not weights yet.",
    zh="少了 softmax：M 的各行还不是权重。",
)
def forgets_the_softmax(x, M):
    return M @ x


@mistake(
    "fixed_mixing",
    en="The softmax runs down the columns. Each row must sum to 1: dim=-1.",
    zh="softmax 沿着列做了。每一行之和应为 1：dim=-1。",
)
def normalises_the_columns(x, M):
    return torch.softmax(M, 0) @ x


@mistake(
    "fixed_mixing",
    en="One softmax runs over the whole matrix. Each row needs its own.",
    zh="对整个矩阵只做了一次 softmax。应当每行各做各的。",
)
def normalises_the_whole_matrix(x, M):
    return torch.softmax(M.flatten(), 0).view_as(M) @ x


@mistake(
    "fixed_mixing",
    en="The weights are transposed after the softmax. Row i of softmax(M) makes output i.",
    zh="softmax 之后把权重转置了。应由 softmax(M) 的第 i 行得到输出 i。",
)
def transposes_the_weights(x, M):
    return torch.softmax(M, -1).mT @ x


@mistake(
    "fixed_mixing",
    en="M is transposed. Row i of M belongs to output i.",
    zh="M 被转置了。M 的第 i 行属于输出 i。",
)
def transposes_the_matrix(x, M):
    return torch.softmax(M.mT, -1) @ x


@mistake(
    "fixed_mixing",
    en="The product is the wrong way round: x times the weights mixes features. The weights stand on the left and mix tokens.",
    zh="乘反了：x 乘以权重混合的是特征。权重应在左边，混合的是词元。",
)
def mixes_the_features(x, M):
    return x @ torch.softmax(M, -1)


@mistake(
    "fixed_mixing",
    en="The weights are made from x. That is attention; here M alone decides.",
    zh="权重由 x 算出。那是注意力；这里只由 M 决定。",
)
def makes_the_weights_from_the_input(x, M):
    return torch.softmax(x @ x.mT, -1) @ x


@mistake(
    "fixed_mixing",
    en="The rows are divided by their sum. Softmax takes the exponential first, so that every weight is positive.",
    zh="只是把每行除以它的和。softmax 先取指数，这样每个权重都是正的。",
)
def divides_by_the_sum(x, M):
    return M / M.sum(-1, keepdim=True) @ x


@mistake(
    "fixed_mixing",
    en="The exponentials are not divided by their sum.",
    zh="取了指数，却没有除以它们的和。",
)
def forgets_to_divide(x, M):
    return M.exp() @ x


@mistake(
    "fixed_mixing",
    en="M is divided by √d. There is no dot product here, so there is nothing to scale.",
    zh="M 被除以了 √d。这里没有点积，没什么要缩放的。",
)
def scales_the_matrix(x, M):
    return torch.softmax(M / x.shape[-1] ** 0.5, -1) @ x


@mistake(
    "fixed_mixing",
    en="The input is added to the result. A residual connection is not asked for.",
    zh="把输入加到了结果上。这里不要残差连接。",
)
def adds_the_input(x, M):
    return x + right.fixed_mixing(x, M)


@mistake(
    "fixed_mixing",
    en="The product works for a single sequence only (`torch.mm`). Use `@`, which takes any leading axes.",
    zh="这个乘法只能处理单个序列（`torch.mm`）。用 `@`，前面有几个轴都行。",
)
def handles_one_sequence_only(x, M):
    return torch.mm(torch.softmax(M, -1), x)


@mistake(
    "fixed_mixing",
    en="M is taken out of the graph (`.data`, `.detach()`): the only parameter here would never learn.",
    zh="M 脱离了计算图（`.data`、`.detach()`）：这里唯一的参数就永远学不到东西。",
)
def freezes_the_matrix(x, M):
    return right.fixed_mixing(x, M.detach())


@mistake(
    "fixed_mixing",
    en="The exponential overwrites M. Its owner still needs it: make a new tensor.",
    zh="取指数时把 M 覆盖了。它的主人还要用：请生成新的张量。",
)
def overwrites_the_matrix(x, M):
    M.exp_()
    return M / M.sum(-1, keepdim=True) @ x


# count_parameters

_MATRICES = {"qkv": 3, "multi_head": 4}


@mistake(
    "count_parameters",
    en="Multi-head attention is counted without its output projection: Wo has d² parameters too.",
    zh="多头注意力漏数了输出投影：Wo 也有 d² 个参数。",
)
def forgets_the_output_projection(kind, n, d):
    return 3 * d * d if kind == "multi_head" else right.count_parameters(kind, n, d)


@mistake(
    "count_parameters",
    en="An output projection is counted for `qkv`. There are three matrices: Wq, Wk, Wv.",
    zh="给「qkv」也算了输出投影。这里只有三个矩阵：Wq、Wk、Wv。",
)
def counts_an_output_projection_too_many(kind, n, d):
    return 4 * d * d if kind == "qkv" else right.count_parameters(kind, n, d)


@mistake(
    "count_parameters",
    en="The fixed matrix is counted as n × d. It mixes tokens with tokens: n × n.",
    zh="把固定矩阵数成了 n × d。它把词元与词元相混：n × n。",
)
def counts_tokens_times_features(kind, n, d):
    return n * d if kind == "fixed" else right.count_parameters(kind, n, d)


@mistake(
    "count_parameters",
    en="A value projection is counted for `fixed`. `fixed_mixing` mixes x itself and learns M alone.",
    zh="给「fixed」也算了值的投影。`fixed_mixing` 直接混合 x，要学的只有 M。",
)
def counts_a_projection_for_fixed(kind, n, d):
    return n * n + d * d if kind == "fixed" else right.count_parameters(kind, n, d)


@mistake(
    "count_parameters",
    en="n and d are exchanged: n is the number of tokens, d their width.",
    zh="n 和 d 颠倒了：n 是词元个数，d 是宽度。",
)
def exchanges_length_and_width(kind, n, d):
    return right.count_parameters(kind, d, n)


@mistake(
    "count_parameters",
    en="Every position is given its own matrices. All positions share them: n does not occur in the count.",
    zh="给每个位置都配了一套矩阵。所有位置共用同一套：参数量里没有 n。",
)
def gives_every_position_its_own_matrices(kind, n, d):
    return n * right.count_parameters(kind, n, d) if kind in _MATRICES else right.count_parameters(kind, n, d)


@mistake(
    "count_parameters",
    en="The attention weights, n × n, are counted as parameters. They are computed from the input and not stored.",
    zh="把 n × n 的注意力权重也数成了参数。它们由输入算出，并不存储。",
)
def counts_the_attention_weights(kind, n, d):
    return right.count_parameters(kind, n, d) + (n * n if kind in _MATRICES else 0)


@mistake(
    "count_parameters",
    en="The biases are counted too. Here only the matrices count.",
    zh="把偏置也数进去了。这里只数矩阵。",
)
def counts_the_biases(kind, n, d):
    return right.count_parameters(kind, n, d) + _MATRICES.get(kind, 0) * d


@mistake(
    "count_parameters",
    en="These are floating-point operations. Parameters are the numbers that are stored.",
    zh="这是浮点运算次数。参数是存下来的那些数。",
)
def counts_the_work(kind, n, d):
    return 2 * (d if kind == "fixed" else n) * right.count_parameters(kind, n, d)


@mistake(
    "count_parameters",
    en="Every kind that is not `fixed` or `qkv` is taken for `multi_head`. Raise ValueError for an unknown kind.",
    zh="凡不是「fixed」或「qkv」的都当成了「multi_head」。不认识的 kind 应抛出 ValueError。",
)
def accepts_any_kind(kind, n, d):
    return right.count_parameters(kind if kind in ("fixed", "qkv") else "multi_head", n, d)


@mistake(
    "count_parameters",
    en="An unknown kind returns None: no branch fits and the function ends silently. Raise ValueError.",
    zh="未知的 kind 返回了 None：没有分支符合，函数就悄悄结束了。应抛出 ValueError。",
)
def falls_through_in_silence(kind, n, d):
    return right.count_parameters(kind, n, d) if kind in ("fixed", *_MATRICES) else None


@mistake(
    "count_parameters",
    en="An unknown kind raises KeyError, straight from the dictionary. Raise ValueError, and say which kind it was.",
    zh="未知的 kind 让字典直接抛出 KeyError。应抛出 ValueError，并说明是哪个 kind。",
)
def raises_a_key_error(kind, n, d):
    return {"fixed": n * n, "qkv": 3 * d * d, "multi_head": 4 * d * d}[kind]
