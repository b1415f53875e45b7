"""Chapter 12: ranks of the wrong thing, heads that look elsewhere, and collapses measured badly."""

import torch

from autograder.reference import ch12_theory as right

from . import mistake

# log_weight_rank


def scores_of(q, k):
    return q.double() @ k.double().T / q.shape[-1] ** 0.5


def counted(matrix, tolerance):
    values = torch.linalg.svdvals(matrix)
    return int((values > tolerance * values[0]).sum())


@mistake(
    "log_weight_rank",
    en="This is the rank of the weights. Take their logarithm first: softmax itself makes the rank large.",
    zh="这是权重的秩。要先取对数：softmax 本身会把秩变大。",
)
def takes_the_rank_of_the_weights(q, k, tolerance=1e-9):
    return counted(torch.softmax(scores_of(q, k), -1), tolerance)


@mistake(
    "log_weight_rank",
    en="This is the rank of the scores. The log-weights also have the normaliser of each row, and that is one rank more.",
    zh="这是分数的秩。对数权重里还有每一行的归一化项，秩因此多 1。",
)
def takes_the_rank_of_the_scores(q, k, tolerance=1e-9):
    return counted(scores_of(q, k), tolerance)


@mistake(
    "log_weight_rank",
    en="d_k + 1 is returned without measuring. It is a bound; the rank can be smaller.",
    zh="没有测量，直接返回了 d_k + 1。它只是上界，秩可以更小。",
)
def returns_the_bound(q, k, tolerance=1e-9):
    return q.shape[-1] + 1


@mistake(
    "log_weight_rank",
    en="The scores were computed in the dtype of the inputs. Its rounding looks like rank; go to float64 before the product.",
    zh="分数是用输入的 dtype 算的。它的舍入误差看上去就像秩；应在相乘之前转成 float64。",
)
def rounds_before_raising_the_precision(q, k, tolerance=1e-9):
    return counted(torch.log_softmax((q @ k.T / q.shape[-1] ** 0.5).double(), -1), tolerance)


@mistake(
    "log_weight_rank",
    en="softmax, then log: small weights underflow to 0 and their logarithm is −inf. Use log_softmax.",
    zh="先 softmax 再取对数：小的权重下溢为 0，对数成了 −inf。请用 log_softmax。",
)
def takes_the_log_of_an_underflow(q, k, tolerance=1e-9):
    logarithms = torch.softmax(scores_of(q, k), -1).log()
    return counted(logarithms, tolerance) if logarithms.isfinite().all() else 0  # the singular values are NaN


@mistake(
    "log_weight_rank",
    en="A small number was added to the weights before the logarithm. It changes the small weights, and the rank grows.",
    zh="取对数之前给权重加了一个小数。小的权重被它扭曲，秩就变大了。",
)
def adds_a_small_number(q, k, tolerance=1e-9):
    return counted((torch.softmax(scores_of(q, k), -1) + 1e-9).log(), tolerance)


@mistake(
    "log_weight_rank",
    en="The tolerance is taken as absolute. It is relative to the largest singular value (`rtol` in matrix_rank).",
    zh="把容差当成了绝对值。它是相对于最大奇异值的（matrix_rank 里的 `rtol`）。",
)
def takes_the_tolerance_as_absolute(q, k, tolerance=1e-9):
    return int((torch.linalg.svdvals(torch.log_softmax(scores_of(q, k), -1)) > tolerance).sum())


@mistake("log_weight_rank", en="`tolerance` is ignored.", zh="忽略了 `tolerance`。")
def ignores_the_tolerance(q, k, tolerance=1e-9):
    return int(torch.linalg.matrix_rank(torch.log_softmax(scores_of(q, k), -1)))


@mistake(
    "log_weight_rank",
    en="Every singular value that is not exactly 0 is counted. Rounding makes almost none exactly 0.",
    zh="凡是不恰好为 0 的奇异值都数进去了。由于舍入，几乎没有哪个恰好为 0。",
)
def counts_rounding(q, k, tolerance=1e-9):
    return min(len(q), len(k))


@mistake(
    "log_weight_rank",
    en="The softmax runs over the queries. Each query shares its weight among the keys: the last axis.",
    zh="softmax 沿着查询做了。应当由每个查询把权重分给各个键，也就是沿最后一个轴。",
)
def normalises_over_queries(q, k, tolerance=1e-9):
    return counted(torch.log_softmax(scores_of(q, k), 0), tolerance)


@mistake(
    "log_weight_rank",
    en="One softmax over the whole table. Each row is normalised by itself.",
    zh="对整张表只做了一个 softmax。每一行要各自归一化。",
)
def normalises_over_everything(q, k, tolerance=1e-9):
    scores = scores_of(q, k)
    return counted(scores - torch.logsumexp(scores.flatten(), 0), tolerance)


@mistake("log_weight_rank", en="The scores are not divided by √d_k.", zh="分数没有除以 √d_k。")
def forgets_the_scale(q, k, tolerance=1e-9):
    return right.log_weight_rank(q * q.shape[-1] ** 0.5, k, tolerance)


@mistake("log_weight_rank", en="The scores are divided by d_k instead of √d_k.", zh="分数除以了 d_k，而不是 √d_k。")
def divides_by_the_width(q, k, tolerance=1e-9):
    return right.log_weight_rank(q / q.shape[-1] ** 0.5, k, tolerance)


@mistake(
    "log_weight_rank",
    en="The rank is returned as a tensor. Return a whole number: int(…).",
    zh="秩是以张量返回的。请返回整数：int(…)。",
)
def returns_the_rank_as_a_tensor(q, k, tolerance=1e-9):
    return torch.tensor(right.log_weight_rank(q, k, tolerance))


# permutation_head


def head(targets, sharpness):
    return right.permutation_head(targets, sharpness)


@mistake(
    "permutation_head",
    en="This is the inverse permutation: token perm[i] looks at token i. Perhaps q and k are exchanged.",
    zh="这是逆置换：词元 perm[i] 去看词元 i。也许 q 和 k 弄反了。",
)
def exchanges_queries_and_keys(perm, sharpness=1e3):
    q, k = head(perm, sharpness)
    return k, q


@mistake(
    "permutation_head",
    en="Every token looks at itself: if q and k are reordered together, nothing is reordered.",
    zh="每个词元都在看自己：q 和 k 一起重排，等于没有重排。",
)
def reorders_both(perm, sharpness=1e3):
    q, k = head(perm, sharpness)
    return q, k[perm]


@mistake(
    "permutation_head",
    en="The sign is wrong: the tokens look everywhere except at perm[i].",
    zh="符号错了：词元看遍别处，唯独不看 perm[i]。",
)
def looks_everywhere_else(perm, sharpness=1e3):
    return head(perm, -sharpness)


@mistake(
    "permutation_head",
    en="The sharpness is not used, and scores of 1 are far too soft for a permutation.",
    zh="没有用 sharpness；分数只有 1，远远不足以表示置换。",
)
def is_too_soft(perm, sharpness=1e3):
    return head(perm, 1.0)


@mistake(
    "permutation_head",
    en="The sharpness is always the same: the argument is ignored.",
    zh="尖锐程度总是一样：参数 sharpness 被忽略了。",
)
def ignores_the_sharpness(perm, sharpness=1e3):
    return head(perm, 1e3)


@mistake(
    "permutation_head",
    en="A position is one number here, so a larger position always scores more and all tokens look at the last one.",
    zh="这里一个位置只是一个数，位置越靠后分数越高，于是大家都去看最后一个词元。",
)
def uses_the_bare_position(perm, sharpness=1e3):
    places = torch.arange(len(perm), dtype=torch.float64, device=perm.device)[:, None]
    return sharpness * places[perm], places


@mistake(
    "permutation_head",
    en="The circle is closed: linspace(0, 2π, n) gives the first and the last token the same place. Use 2π·i/n.",
    zh="圆首尾相接了：linspace(0, 2π, n) 让第一个和最后一个词元落在同一点。应当用 2π·i/n。",
)
def closes_the_circle(perm, sharpness=1e3):
    angle = torch.linspace(0, 2 * torch.pi, len(perm), dtype=torch.float64, device=perm.device)
    places = torch.stack([angle.cos(), angle.sin()], -1)
    return sharpness * places[perm], places


@mistake(
    "permutation_head",
    en="Infinity as a score: inf × 0 is NaN. Large is enough.",
    zh="用无穷大当分数：inf × 0 是 NaN。足够大就行。",
)
def uses_infinity(perm, sharpness=1e3):
    q, k = head(perm, 1.0)
    return q.log(), k


@mistake(
    "permutation_head",
    en="The keys are whole numbers, as one_hot makes them. Convert them, or q @ k.T does not work.",
    zh="键是整数，one_hot 给出的就是整数。要先转换，否则 q @ k.T 不能用。",
)
def leaves_whole_numbers(perm, sharpness=1e3):
    k = torch.nn.functional.one_hot(torch.arange(len(perm), device=perm.device))
    return sharpness * k[perm], k


@mistake(
    "permutation_head",
    en="This is the table of weights itself. Return the queries and keys that make it.",
    zh="这是权重表本身。应返回能产生它的查询和键。",
)
def returns_the_weights(perm, sharpness=1e3):
    return head(perm, 1.0)[0]


# previous_token_head


@mistake(
    "previous_token_head",
    en="Every token looks one ahead, at i + 1, not one back.",
    zh="每个词元都往后看了 i + 1，而不是往前看。",
)
def looks_ahead(length, sharpness=1e3):
    return head((torch.arange(length) + 1).clamp(max=length - 1), sharpness)


@mistake(
    "previous_token_head",
    en="The sequence is closed into a ring: token 0 looks at the last token. It should look at itself.",
    zh="序列接成了环：词元 0 去看最后一个词元。它应当看自己。",
)
def wraps_around(length, sharpness=1e3):
    return head((torch.arange(length) - 1) % length, sharpness)


@mistake(
    "previous_token_head",
    en="Token 0 has an empty query, so it looks at all tokens equally. It should look at itself.",
    zh="词元 0 的查询是空的，于是它平均地看所有词元。它应当看自己。",
)
def leaves_the_first_token_undecided(length, sharpness=1e3):
    return sharpness * torch.eye(length, dtype=torch.float64).roll(1, 0).tril(), torch.eye(length, dtype=torch.float64)


@mistake("previous_token_head", en="Every token looks at itself.", zh="每个词元都在看自己。")
def looks_at_itself(length, sharpness=1e3):
    return head(torch.arange(length), sharpness)


@mistake(
    "previous_token_head",
    en="q and k are exchanged: the last token has no target, so it looks everywhere.",
    zh="q 和 k 弄反了：最后一个词元没有目标，只好到处看。",
)
def exchanges_queries_and_keys_of_the_shift(length, sharpness=1e3):
    q, k = right.previous_token_head(length, sharpness)
    return k, q


@mistake(
    "previous_token_head",
    en="All earlier tokens share the weight. Only the one just before should have it.",
    zh="之前的所有词元平分了权重。应当只给紧挨着的前一个。",
)
def looks_at_the_whole_past(length, sharpness=1e3):
    past = torch.ones(length, length, dtype=torch.float64).tril(-1)
    past[0, 0] = 1.0
    return sharpness * past, torch.eye(length, dtype=torch.float64)


@mistake(
    "previous_token_head",
    en="There is no row for token 0. Return as many queries as tokens.",
    zh="缺了词元 0 那一行。有多少词元，就返回多少个查询。",
)
def drops_the_first_token(length, sharpness=1e3):
    q, k = right.previous_token_head(length, sharpness)
    return q[1:], k


@mistake(
    "previous_token_head",
    en="The sign is wrong: the tokens look everywhere except one back.",
    zh="符号错了：词元看遍别处，唯独不看前一个。",
)
def looks_everywhere_but_back(length, sharpness=1e3):
    return right.previous_token_head(length, -sharpness)


@mistake(
    "previous_token_head",
    en="The sharpness is not used, and scores of 1 leave the weights soft.",
    zh="没有用 sharpness；分数只有 1，权重很软。",
)
def looks_back_softly(length, sharpness=1e3):
    return right.previous_token_head(length, 1.0)


@mistake(
    "previous_token_head",
    en="The sharpness is always the same: the argument is ignored.",
    zh="尖锐程度总是一样：参数 sharpness 被忽略了。",
)
def always_looks_back_sharply(length, sharpness=1e3):
    return right.previous_token_head(length)


@mistake(
    "previous_token_head",
    en="A position is one number here, so a larger position always scores more: tokens look at the end of the text.",
    zh="这里一个位置只是一个数，位置越靠后分数越高，于是词元都去看末尾。",
)
def looks_back_by_the_bare_position(length, sharpness=1e3):
    places = torch.arange(length, dtype=torch.float64)[:, None]
    return sharpness * (places - 1), places


# rank_collapse


def collapse(x, depth, skip, *, weights=None, join=None, measure=None):
    """The reference with one piece replaced."""
    weights = weights or (lambda x: torch.softmax(x @ x.T / x.shape[-1] ** 0.5, -1))
    join = join or (lambda new, x, first: new + x if skip else new)
    measure = measure or (lambda x, first: right._unlikeness(x))
    first, distances = x, [measure(x, x)]
    for _ in range(depth):
        x = join(weights(x) @ x, x, first)
        distances.append(measure(x, first))
    return torch.stack(distances)


@mistake(
    "rank_collapse",
    en="The mean is taken over the features of each token. Take it over the tokens (axis 0).",
    zh="均值是对每个词元的各个特征取的。应当对词元取（第 0 个轴）。",
)
def averages_the_features(x, depth, skip):
    return collapse(x, depth, skip, measure=lambda x, _: (x - x.mean(-1, keepdim=True)).norm() / x.norm())


@mistake(
    "rank_collapse",
    en="This measures how far x is from zero. The tokens do not vanish, they become alike: subtract their mean.",
    zh="这量的是 x 离零有多远。词元并不会消失，而是变得彼此相同：要先减去均值。",
)
def measures_the_distance_to_zero(x, depth, skip):
    return collapse(x, depth, skip, measure=lambda x, first: x.norm() / first.norm())


@mistake("rank_collapse", en="The distance is not divided by ‖x‖.", zh="距离没有除以 ‖x‖。")
def forgets_to_divide(x, depth, skip):
    return collapse(x, depth, skip, measure=lambda x, _: (x - x.mean(0)).norm())


@mistake(
    "rank_collapse",
    en="Every layer is divided by the norm of the input. Divide by the norm of the current x.",
    zh="每一层都除以了输入的范数。应当除以当前 x 的范数。",
)
def divides_by_the_first_norm(x, depth, skip):
    return collapse(x, depth, skip, measure=lambda x, first: (x - x.mean(0)).norm() / first.norm())


@mistake(
    "rank_collapse",
    en="The largest singular value was taken for the norm (ord=2). The Frobenius norm is the default.",
    zh="范数取成了最大奇异值（ord=2）。默认的才是 Frobenius 范数。",
)
def takes_the_spectral_norm(x, depth, skip):
    def norm(x):
        return torch.linalg.matrix_norm(x.double(), ord=2).to(x.dtype)

    return collapse(x, depth, skip, measure=lambda x, _: norm(x - x.mean(0)) / norm(x))


@mistake(
    "rank_collapse",
    en="The distance comes from ‖x‖² − n‖mean‖², and the difference of two large numbers is rounding. Subtract first, then square.",
    zh="距离是用 ‖x‖² − n‖均值‖² 算的，两个大数相减只剩舍入误差。应当先相减，再平方。",
)
def cancels(x, depth, skip):
    def measure(x, _):
        apart = x.square().sum() - len(x) * x.mean(0).square().sum()
        return apart.clamp(min=0).sqrt() / x.norm()

    return collapse(x, depth, skip, measure=measure)


@mistake("rank_collapse", en="`skip` is ignored: there is never a residual.", zh="忽略了 `skip`：从来不加残差。")
def never_skips(x, depth, skip):
    return right.rank_collapse(x, depth, False)


@mistake("rank_collapse", en="`skip` is ignored: there is always a residual.", zh="忽略了 `skip`：总是加残差。")
def always_skips(x, depth, skip):
    return right.rank_collapse(x, depth, True)


@mistake(
    "rank_collapse",
    en="The skip adds the input of the first layer every time. Add the input of this layer.",
    zh="残差每次加的都是最初的输入。应当加这一层的输入。",
)
def skips_from_the_first_layer(x, depth, skip):
    return collapse(x, depth, skip, join=lambda new, x, first: new + first if skip else new)


@mistake(
    "rank_collapse",
    en="The scores are not divided by √d.",
    zh="分数没有除以 √d。",
)
def forgets_the_root(x, depth, skip):
    return collapse(x, depth, skip, weights=lambda x: torch.softmax(x @ x.T, -1))


@mistake(
    "rank_collapse",
    en="The softmax runs down the columns: the rows of the weights do not sum to 1.",
    zh="softmax 沿着列做了：权重的每一行之和不是 1。",
)
def normalises_the_columns(x, depth, skip):
    return collapse(x, depth, skip, weights=lambda x: torch.softmax(x @ x.T / x.shape[-1] ** 0.5, 0))


@mistake(
    "rank_collapse",
    en="The weights of the first layer are used in all layers. Compute them again from the current x.",
    zh="所有层都用第一层的权重。应当由当前的 x 重新计算。",
)
def freezes_the_weights(x, depth, skip):
    frozen = torch.softmax(x @ x.T / x.shape[-1] ** 0.5, -1)
    return collapse(x, depth, skip, weights=lambda _: frozen)


@mistake(
    "rank_collapse",
    en="The input itself is not measured: depth + 1 numbers, the first before any layer.",
    zh="没有量输入本身：一共 depth + 1 个数，第一个在所有层之前。",
)
def forgets_the_input(x, depth, skip):
    return right.rank_collapse(x, depth, skip)[1:]


@mistake(
    "rank_collapse",
    en="The numbers went through Python floats and came back as float32. Keep the dtype of x.",
    zh="这些数经过 Python 浮点数，变成了 float32。请保持 x 的 dtype。",
)
def loses_the_dtype(x, depth, skip):
    return torch.tensor(right.rank_collapse(x, depth, skip).tolist())


@mistake(
    "rank_collapse",
    en="`+=` changes the tokens you were given. Write x = x + ….",
    zh="`+=` 改动了传入的词元。请写 x = x + …。",
)
def changes_its_input(x, depth, skip):
    distances = right.rank_collapse(x, depth, skip)
    for _ in range(depth if skip else 0):
        x += torch.softmax(x @ x.T / x.shape[-1] ** 0.5, -1) @ x
    return distances
