"""Chapter 15: normalisers that are missing or wrong, features that are not what they should be, and hidden tables."""

import torch

from autograder.reference import ch15_linear as right

from . import mistake

# linear_attention


def _phi(x):
    return torch.nn.functional.elu(x) + 1


def _sums(fq, fk, v, causal):
    """Numerator (..., T, e) and normaliser (..., T, 1)."""
    if not causal:
        return fq @ (fk.mT @ v), fq @ fk.sum(-2)[..., None]
    states = (fk[..., :, None] * v[..., None, :]).cumsum(-3)
    return torch.einsum("...nr,...nre->...ne", fq, states), (fq * fk.cumsum(-2)).sum(-1, keepdim=True)


def _mixed(fq, fk, v, causal):
    top, norm = _sums(fq, fk, v, causal)
    return top / norm


def _past(fq, fk, v):
    """Causal sums that leave out the token itself."""
    top, norm = _sums(fq, fk, v, True)
    own = (fq * fk).sum(-1, keepdim=True)
    return (top - own * v) / (norm - own).masked_fill(torch.arange(fq.shape[-2])[:, None] == 0, 0.0)


def _table(fq, fk, v, causal):
    weights = fq @ fk.mT
    weights = weights.tril() if causal else weights
    return weights @ v / weights.sum(-1, keepdim=True)


@mistake(
    "linear_attention",
    en="The normaliser is missing: φ(Q)(φ(K)ᵀV) must be divided by φ(Q)(φ(K)ᵀ1), or every row is too large by the sum of its weights.",
    zh="缺少归一化因子：φ(Q)(φ(K)ᵀV) 还要除以 φ(Q)(φ(K)ᵀ1)，否则每一行都放大了该行权重之和那么多倍。",
)
def forgets_the_normaliser(q, k, v, causal=False):
    return _sums(_phi(q), _phi(k), v, causal)[0]


@mistake(
    "linear_attention",
    en="The normaliser is made from the bare keys. It must be made from the same features φ(k) as the numerator.",
    zh="归一化因子用的是原来的键。它应当与分子一样，用特征 φ(k)。",
)
def normalises_without_the_features(q, k, v, causal=False):
    return _sums(_phi(q), _phi(k), v, causal)[0] / _sums(_phi(q), k, v, causal)[1]


@mistake(
    "linear_attention",
    en="The sum is divided by the number of keys. Divide by the sum of the weights.",
    zh="除以了键的个数。应当除以权重之和。",
)
def divides_by_the_number_of_keys(q, k, v, causal=False):
    count = torch.arange(1, k.shape[-2] + 1)[:, None] if causal else k.shape[-2]
    return _sums(_phi(q), _phi(k), v, causal)[0] / count


@mistake(
    "linear_attention",
    en="A small epsilon was added to the normaliser. The features are positive: none is needed, and the rows no longer sum to 1.",
    zh="归一化因子上加了一个小的 eps。特征都是正的，不需要它；加上之后，每行的和就不再是 1。",
)
def adds_an_epsilon(q, k, v, causal=False):
    top, norm = _sums(_phi(q), _phi(k), v, causal)
    return top / (norm + 1e-6)


@mistake(
    "linear_attention",
    en="φ is elu without the + 1: weights can be negative, and the normaliser can vanish.",
    zh="φ 用了 elu 却没有 + 1：权重会变成负的，归一化因子也可能为零。",
)
def forgets_the_plus_one(q, k, v, causal=False):
    return _mixed(_phi(q) - 1, _phi(k) - 1, v, causal)


@mistake(
    "linear_attention",
    en="φ is relu. It is exactly 0 for negative numbers, so whole rows and their gradients vanish. Here φ = elu + 1.",
    zh="φ 用的是 relu。它对负数恰好为 0，整行以及梯度都会消失。这里 φ = elu + 1。",
)
def uses_relu(q, k, v, causal=False):
    return _mixed(q.relu(), k.relu(), v, causal)


@mistake(
    "linear_attention",
    en="φ was applied to the keys only. Queries need the same φ.",
    zh="只对键用了 φ。查询也要用同一个 φ。",
)
def leaves_the_queries_bare(q, k, v, causal=False):
    return _mixed(q, _phi(k), v, causal)


@mistake(
    "linear_attention",
    en="The queries were divided by √d before φ. There is no softmax here whose scores would need it.",
    zh="在 φ 之前把查询除以了 √d。这里没有 softmax，分数不需要缩放。",
)
def scales_as_for_softmax(q, k, v, causal=False):
    return _mixed(_phi(q / q.shape[-1] ** 0.5), _phi(k), v, causal)


@mistake(
    "linear_attention",
    en="The table φ(Q)φ(K)ᵀ is made first. The result is right, but the brackets are in the wrong place: multiply φ(K)ᵀV first.",
    zh="先算出了 φ(Q)φ(K)ᵀ 这张表。结果没错，但括号放错了地方：应当先算 φ(K)ᵀV。",
)
def makes_the_whole_table(q, k, v, causal=False):
    return _table(_phi(q), _phi(k), v, causal)


@mistake(
    "linear_attention",
    en="The causal case falls back to a masked n × n table. Carry running sums along the length instead.",
    zh="因果的情形退回到了遮住一半的 n × n 表。应当沿长度方向做累加。",
)
def makes_the_table_when_causal(q, k, v, causal=False):
    return _table(_phi(q), _phi(k), v, True) if causal else right.linear_attention(q, k, v)


@mistake(
    "linear_attention",
    en="A few queries at a time, but each against all keys, and then concatenated: the memory is small, the work is still n².",
    zh="每次只取几个查询，却和所有的键相乘，再拼起来：内存小了，计算量还是 n²。",
)
def goes_through_all_keys(q, k, v, causal=False):
    fq, fk, pieces = _phi(q), _phi(k), []
    for i in range(0, q.shape[-2], 32):
        weights = fq[..., i : i + 32, :] @ fk.mT
        weights = weights.tril(i) if causal else weights
        pieces.append(weights @ v / weights.sum(-1, keepdim=True))
    return torch.cat(pieces, -2)


@mistake(
    "linear_attention",
    en="The table is made in NumPy: there it takes n × n memory all the same, and the gradient is lost.",
    zh="表是在 NumPy 里算的：照样占 n × n 的内存，而且梯度没了。",
)
def hides_the_table_in_numpy(q, k, v, causal=False):
    weights = _phi(q).detach().double().numpy() @ _phi(k).detach().double().mT.numpy()
    weights = weights * (1 - _ahead(weights.shape[-1])) if causal else weights
    out = weights @ v.detach().double().numpy() / weights.sum(-1, keepdims=True)
    return torch.from_numpy(out).to(v.dtype)


def _ahead(n):
    return torch.ones(n, n, dtype=torch.float64).triu(1).numpy()


@mistake(
    "linear_attention",
    en="The running sum leaves out the present token: the first row is 0/0. Query i sees the keys 0 … i, itself included.",
    zh="累加时漏掉了当前词元：第一行成了 0/0。查询 i 看到键 0 … i，包括自己。",
)
def leaves_out_the_present(q, k, v, causal=False):
    return _past(_phi(q), _phi(k), v) if causal else right.linear_attention(q, k, v)


@mistake("linear_attention", en="`causal` is ignored.", zh="忽略了 `causal`。")
def ignores_causal(q, k, v, causal=False):
    return right.linear_attention(q, k, v)


@mistake(
    "linear_attention",
    en="The numerator is causal, the normaliser is not: it sums over all keys, the future ones included.",
    zh="分子是因果的，归一化因子却不是：它对所有键求和，连后面的也算上了。",
)
def normalises_over_the_future(q, k, v, causal=False):
    return _sums(_phi(q), _phi(k), v, causal)[0] / _sums(_phi(q), _phi(k), v, False)[1]


@mistake(
    "linear_attention",
    en="`elu` works in place here and changes the caller's tensors. Leave out `inplace=True`.",
    zh="这里的 `elu` 是就地计算的，改动了调用者的张量。请去掉 `inplace=True`。",
)
def changes_the_inputs(q, k, v, causal=False):
    fq, fk = (torch.nn.functional.elu(x, inplace=not x.requires_grad) + 1 for x in (q, k))
    return _mixed(fq, fk, v, causal)


# linear_attention_recurrent


@mistake(
    "linear_attention_recurrent",
    en="The answer is read before the present token is written into the state: the first row is 0/0. Write first, then read.",
    zh="还没把当前词元写进状态就先读了：第一行成了 0/0。应当先写，后读。",
)
def reads_before_it_writes(q, k, v):
    return _past(_phi(q), _phi(k), v)


@mistake(
    "linear_attention_recurrent",
    en="Only the sum of φ(k)vᵀ is carried along. Carry the sum of φ(k) as well, and divide by φ(q)·Σφ(k).",
    zh="只带着 φ(k)vᵀ 的和。还要带上 φ(k) 的和，并除以 φ(q)·Σφ(k)。",
)
def carries_no_normaliser(q, k, v):
    return _sums(_phi(q), _phi(k), v, True)[0]


@mistake(
    "linear_attention_recurrent",
    en="The normaliser uses only the present key. It is a running sum, like the state.",
    zh="归一化因子只用了当前的键。它和状态一样，也要累加。",
)
def normalises_by_the_present_key(q, k, v):
    return _sums(_phi(q), _phi(k), v, True)[0] / (_phi(q) * _phi(k)).sum(-1, keepdim=True)


@mistake(
    "linear_attention_recurrent",
    en="The state is overwritten at every step, so each token sees only itself. Add to the state.",
    zh="每一步都覆盖了状态，每个词元只看到自己。应当往状态上加。",
)
def overwrites_the_state(q, k, v):
    return v * 1.0


@mistake(
    "linear_attention_recurrent",
    en="All tokens read the last state, which knows the future. Read within the loop, right after writing.",
    zh="所有词元读的都是最后的状态，里面有未来的信息。应当在循环里、刚写完就读。",
)
def reads_only_the_last_state(q, k, v):
    return right.linear_attention(q, k, v)


@mistake(
    "linear_attention_recurrent",
    en="A state is kept for every step (a cumulative sum, or a list). Right, but n times the memory: carry one state along.",
    zh="每一步都留下了一个状态（用累加和，或者列表）。结果没错，内存却是 n 倍：只带一个状态往前走。",
)
def keeps_every_state(q, k, v):
    return right.linear_attention(q, k, v, causal=True)


@mistake(
    "linear_attention_recurrent",
    en="Every step goes back over all keys so far, so the work is n². The state already holds their sum.",
    zh="每一步都回头把之前的键全看一遍，计算量是 n²。它们的和已经在状态里了。",
)
def looks_back_at_every_step(q, k, v):
    fq, fk, rows = _phi(q), _phi(k), []
    for t in range(q.shape[-2]):
        weights = fq[..., t : t + 1, :] @ fk[..., : t + 1, :].mT
        rows.append(weights @ v[..., : t + 1, :] / weights.sum(-1, keepdim=True))
    return torch.cat(rows, -2)


@mistake(
    "linear_attention_recurrent",
    en="The normaliser starts at a small epsilon instead of 0. The features are positive: none is needed.",
    zh="归一化因子从一个小的 eps 而不是 0 开始。特征都是正的，不需要它。",
)
def starts_from_an_epsilon(q, k, v):
    top, norm = _sums(_phi(q), _phi(k), v, True)
    return top / (norm + 1e-6)


# favor_features


def _half_norm(x):
    return (x * x).sum(-1, keepdim=True) / 2


@mistake(
    "favor_features",
    en="The term −|x|²/2 is missing: the dot product of two features is then e^(|x|²/2 + |y|²/2) times too large.",
    zh="少了 −|x|²/2 这一项：两个特征的点积因此放大了 e^(|x|²/2 + |y|²/2) 倍。",
)
def forgets_the_half_norm(x, W):
    return torch.exp(x @ W.mT) / len(W) ** 0.5


@mistake(
    "favor_features", en="|x|² is subtracted whole. Subtract half of it.", zh="减去了整个 |x|²。应当减去它的一半。"
)
def subtracts_the_whole_norm(x, W):
    return torch.exp(x @ W.mT - 2 * _half_norm(x)) / len(W) ** 0.5


@mistake("favor_features", en="The norm |x| was not squared.", zh="模长 |x| 没有平方。")
def forgets_to_square_the_norm(x, W):
    return torch.exp(x @ W.mT - x.norm(dim=-1, keepdim=True) / 2) / len(W) ** 0.5


@mistake(
    "favor_features",
    en="One |x|² is summed over all vectors. Each vector has its own: sum over the last axis and keep it.",
    zh="把所有向量的 |x|² 加成了一个数。每个向量各有各的：只沿最后一个轴求和，并保留该轴。",
)
def sums_the_norm_over_everything(x, W):
    return torch.exp(x @ W.mT - (x * x).sum() / 2) / len(W) ** 0.5


@mistake("favor_features", en="The features are not divided by √r.", zh="特征没有除以 √r。")
def forgets_the_root_of_r(x, W):
    return torch.exp(x @ W.mT - _half_norm(x))


@mistake(
    "favor_features",
    en="The features are divided by r. Divide each side by √r: only the product of both is a mean over r.",
    zh="除以了 r。每一边只除 √r：两边的乘积才是对 r 个特征取平均。",
)
def divides_by_r(x, W):
    return torch.exp(x @ W.mT - _half_norm(x)) / len(W)


@mistake(
    "favor_features",
    en="These are sines and cosines. They estimate the same kernel but can be negative, and there are 2r of them. Use exp(Wx − |x|²/2).",
    zh="这是正弦和余弦特征。它们估计的是同一个核，却可能为负，而且有 2r 个。请用 exp(Wx − |x|²/2)。",
)
def uses_trigonometric_features(x, W):
    waves = torch.cat([torch.sin(x @ W.mT), torch.cos(x @ W.mT)], -1)
    return torch.exp(_half_norm(x)) * waves / len(W) ** 0.5


@mistake(
    "favor_features",
    en="x is divided by d^(1/4) here. That belongs to the performer: the features take x as it comes.",
    zh="在这里把 x 除以了 d^(1/4)。那是 performer 的事：特征函数拿到什么就用什么。",
)
def scales_inside_the_features(x, W):
    return right.favor_features(x / x.shape[-1] ** 0.25, W)


# performer


def _features(q, k, W, left=0.25, right_side=0.25):
    d = q.shape[-1]
    return right.favor_features(q / d**left, W), right.favor_features(k / d**right_side, W)


@mistake(
    "performer",
    en="Queries and keys are not scaled: divide each by d^(1/4), so that their product is divided by √d.",
    zh="查询和键没有缩放：各除以 d^(1/4)，乘积才正好除以 √d。",
)
def forgets_the_scale(q, k, v, W, causal=False):
    return _mixed(*_features(q, k, W, 0, 0), v, causal)


@mistake(
    "performer",
    en="√d on each side divides the scores by d. Each side gets d^(1/4).",
    zh="两边都除以 √d，分数就除以了 d。每一边只除 d^(1/4)。",
)
def divides_both_sides_by_root_d(q, k, v, W, causal=False):
    return _mixed(*_features(q, k, W, 0.5, 0.5), v, causal)


@mistake(
    "performer",
    en="√d is put on the queries alone. |q|² and |k|² enter the features too, so share it: d^(1/4) on each side.",
    zh="√d 全除在了查询上。|q|² 和 |k|² 也进入特征，所以要两边分担：各除 d^(1/4)。",
)
def divides_the_queries_alone(q, k, v, W, causal=False):
    return _mixed(*_features(q, k, W, 0.5, 0), v, causal)


@mistake(
    "performer",
    en="The normaliser is missing: divide by φ(Q)(φ(K)ᵀ1).",
    zh="缺少归一化因子：要除以 φ(Q)(φ(K)ᵀ1)。",
)
def forgets_performers_normaliser(q, k, v, W, causal=False):
    return _sums(*_features(q, k, W), v, causal)[0]


@mistake(
    "performer",
    en="Queries and keys got different features. Both must use the same W, or their products mean nothing.",
    zh="查询和键用了不同的特征。两边必须用同一个 W，否则乘积没有意义。",
)
def gives_each_side_its_own_features(q, k, v, W, causal=False):
    return _mixed(_features(q, k, W)[0], _features(q, k, W.flip(0))[1], v, causal)


@mistake(
    "performer",
    en="Each key was stabilised by its own maximum, which does not cancel: it changes the weights. One maximum for all keys does cancel.",
    zh="每个键各减去了自己的最大值，这在任何地方都消不掉，权重就变了。所有键共用一个最大值才消得掉。",
)
def stabilises_each_key_by_itself(q, k, v, W, causal=False):
    fq, fk = _features(q, k, W)
    return _mixed(fq, fk / fk.amax(-1, keepdim=True), v, causal)


@mistake(
    "performer",
    en="A small epsilon was added to the features. They are positive already.",
    zh="特征上加了一个小的 eps。它们本来就是正的。",
)
def adds_an_epsilon_to_the_features(q, k, v, W, causal=False):
    fq, fk = _features(q, k, W)
    return _mixed(fq + 1e-4, fk + 1e-4, v, causal)


@mistake(
    "performer",
    en="The running sum leaves out the present token: the first row is 0/0.",
    zh="累加时漏掉了当前词元：第一行成了 0/0。",
)
def leaves_out_performers_present(q, k, v, W, causal=False):
    return _past(*_features(q, k, W), v) if causal else right.performer(q, k, v, W)


@mistake("performer", en="`causal` is ignored.", zh="忽略了 `causal`。")
def ignores_causal_in_performer(q, k, v, W, causal=False):
    return right.performer(q, k, v, W)


@mistake(
    "performer",
    en="The n × n table of feature products is made. Multiply φ(K)ᵀV first, or carry running sums.",
    zh="算出了特征乘积的 n × n 表。应当先算 φ(K)ᵀV，或者沿长度累加。",
)
def makes_performers_table(q, k, v, W, causal=False):
    return _table(*_features(q, k, W), v, causal)


# linformer


@mistake(
    "linformer",
    en="E and F are applied to the features. They act along the length: E @ k, not k @ Eᵀ.",
    zh="E 和 F 用在了特征轴上。它们沿长度方向作用：是 E @ k，不是 k @ Eᵀ。",
)
def projects_the_features(q, k, v, E, F):
    return torch.softmax(q @ (k @ E.mT).mT / q.shape[-1] ** 0.5, -1) @ (v @ F.mT)


@mistake("linformer", en="E shortens both. The values have their own, F.", zh="键和值都用了 E。值有自己的 F。")
def shortens_both_with_e(q, k, v, E, F):
    return right.linformer(q, k, v, E, E)


@mistake(
    "linformer", en="E and F are swapped: E is for the keys, F for the values.", zh="E 和 F 用反了：E 给键，F 给值。"
)
def swaps_e_and_f(q, k, v, E, F):
    return right.linformer(q, k, v, F, E)


@mistake("linformer", en="The scores are not divided by √d.", zh="分数没有除以 √d。")
def forgets_linformers_scale(q, k, v, E, F):
    return right.linformer(q * q.shape[-1] ** 0.5, k, v, E, F)


@mistake(
    "linformer",
    en="The scores are divided by √r. The dot products still run over d features: divide by √d.",
    zh="分数除以了 √r。点积仍然是对 d 个特征求和：应当除以 √d。",
)
def divides_by_root_r(q, k, v, E, F):
    return right.linformer(q * (q.shape[-1] / len(E)) ** 0.5, k, v, E, F)


@mistake(
    "linformer",
    en="The softmax is missing. Linformer is not a kernel method: softmax stays, over r mixtures instead of n keys.",
    zh="缺少 softmax。Linformer 不是核方法：softmax 保留，只是从 n 个键换成 r 个混合。",
)
def forgets_the_softmax(q, k, v, E, F):
    return q @ (E @ k).mT / q.shape[-1] ** 0.5 @ (F @ v)


@mistake(
    "linformer",
    en="The n × n scores are made first and shortened afterwards: nothing is saved. Shorten the keys before.",
    zh="先算出 n × n 的分数，再去压缩：什么也没省。应当先压缩键。",
)
def shortens_after_the_scores(q, k, v, E, F):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return torch.softmax(scores @ E.mT, -1) @ (F @ v)
