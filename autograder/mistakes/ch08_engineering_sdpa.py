"""Chapter 8: what goes wrong between the formula and the library function."""

import torch

from autograder.reference import ch08_engineering_sdpa as right

from . import mistake


def _keep(x, p):
    """Which entries survive. The seed is fixed, so that a mistake gives the same answer every time."""
    generator = torch.Generator(x.device).manual_seed(0)
    return torch.rand(x.shape, generator=generator, device=x.device) >= p


def _drop(x, p):
    return x * _keep(x, p) / (1 - p)


# ScaledDotProductAttention


class _Steps(right.ScaledDotProductAttention):
    """The right module taken apart, so that a mistake can replace one step."""

    def forward(self, q, k, v, mask=None):
        attn = self.normalise(self.score(q, k), mask)
        return self.thin(attn) @ v, attn

    def score(self, q, k):
        return q @ k.transpose(-2, -1) / self.temperature

    def normalise(self, scores, mask):
        return right.softmax_where(scores, None if mask is None else mask != 0)

    def thin(self, attn):
        return self.dropout(attn)

    @property
    def p(self):
        return self.dropout.p if self.training else 0.0


@mistake(
    "ScaledDotProductAttention",
    en="The scores are not divided by the temperature.",
    zh="分数没有除以温度。",
)
class ForgetsTheTemperature(_Steps):
    def score(self, q, k):
        return q @ k.transpose(-2, -1)


@mistake(
    "ScaledDotProductAttention",
    en="The scores are multiplied by the temperature. A high temperature must flatten the weights: divide.",
    zh="分数乘上了温度。温度高，权重应当变平：要用除法。",
)
class MultipliesByTheTemperature(_Steps):
    def score(self, q, k):
        return q @ k.transpose(-2, -1) * self.temperature


@mistake(
    "ScaledDotProductAttention",
    en="The scores are divided by √d_k and the temperature is ignored. Divide by `temperature`; the caller passes √d_k if it is needed.",
    zh="分数除以了 √d_k，而忽略了温度。应除以 `temperature`；想要 √d_k 的调用者会自己传进来。",
)
class DividesByTheRootInstead(_Steps):
    def score(self, q, k):
        return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


@mistake(
    "ScaledDotProductAttention",
    en="The axes 2 and 3 are exchanged by number, so only four axes work. Count from the end: transpose(-2, -1).",
    zh="写死了交换第 2、3 轴，于是只支持四个轴。应从末尾数起：transpose(-2, -1)。",
)
class CountsTheAxesFromTheFront(_Steps):
    def score(self, q, k):
        return q @ k.transpose(2, 3) / self.temperature


@mistake(
    "ScaledDotProductAttention",
    en="The mask is inverted: here 0 means drop, and everything else means keep.",
    zh="掩码反了：这里 0 表示丢弃，其余表示保留。",
)
class InvertsTheMask(_Steps):
    def normalise(self, scores, mask):
        return super().normalise(scores, None if mask is None else mask == 0)


@mistake(
    "ScaledDotProductAttention",
    en="The mask is added to the scores as 0 and 1: that hides nothing. Fill the scores with −inf where it is 0.",
    zh="把掩码当作 0 和 1 加到了分数上：这样什么也遮不住。应在它为 0 处把分数填成 −inf。",
)
class AddsTheMask(_Steps):
    def normalise(self, scores, mask):
        return torch.softmax(scores if mask is None else scores + mask.to(scores.dtype), -1)


@mistake(
    "ScaledDotProductAttention",
    en="The mask is inverted with `~`, which takes bool masks only: on integers and floats it fails. Compare: mask == 0.",
    zh="用 `~` 对掩码取反，这只适用于布尔掩码：对整数和浮点数会报错。应使用比较：mask == 0。",
)
class TakesBoolMasksOnly(_Steps):
    def normalise(self, scores, mask):
        return torch.softmax(scores if mask is None else scores.masked_fill(~mask, -torch.inf), -1).nan_to_num(0.0)


@mistake(
    "ScaledDotProductAttention",
    en="Dropped scores are filled with −1e9, as in the note. In a row where everything is dropped that averages what is forbidden, "
    "and float16 cannot hold the number. Use −inf, and give empty rows 0.",
    zh="像笔记那样用 −1e9 填充。整行都被丢弃时，它会把禁止的内容平均进来；float16 也装不下这个数。应使用 −inf，并让空行为 0。",
)
class FillsWithMinusABillion(_Steps):
    def normalise(self, scores, mask):
        return torch.softmax(scores if mask is None else scores.masked_fill(mask == 0, -1e9), -1)


@mistake(
    "ScaledDotProductAttention",
    en="A query that may look nowhere gets NaN: the softmax of nothing but −inf. Its weights and its output are 0.",
    zh="哪里都不许看的查询得到了 NaN：整行都是 −inf 的 softmax。它的权重和输出应为 0。",
)
class LeavesNanInEmptyRows(_Steps):
    def normalise(self, scores, mask):
        return torch.softmax(scores if mask is None else scores.masked_fill(mask == 0, -torch.inf), -1)


@mistake(
    "ScaledDotProductAttention",
    en="The weights are returned after dropout, as in the note: in training their rows do not sum to 1. Keep the weights before dropout for the caller.",
    zh="像笔记那样返回了 dropout 之后的权重：训练时每行的和不是 1。应把 dropout 之前的权重返回给调用者。",
)
class ReturnsTheDroppedWeights(_Steps):
    def forward(self, q, k, v, mask=None):
        attn = _drop(self.normalise(self.score(q, k), mask), self.p)
        return attn @ v, attn


@mistake(
    "ScaledDotProductAttention",
    en="Dropout acts in evaluation too. Use nn.Dropout, or pass training=self.training.",
    zh="评估时 dropout 也在起作用。应使用 nn.Dropout，或传入 training=self.training。",
)
class DropsInEvaluation(_Steps):
    def thin(self, attn):
        return _drop(attn, self.dropout.p)


@mistake("ScaledDotProductAttention", en="Nothing is ever dropped.", zh="从来没有做 dropout。")
class NeverDrops(_Steps):
    def thin(self, attn):
        return attn


@mistake(
    "ScaledDotProductAttention",
    en="Dropout acts on the scores, before the softmax. A score of 0 is an ordinary score: drop weights.",
    zh="dropout 作用在 softmax 之前的分数上。分数 0 只是普通分数：要丢弃的是权重。",
)
class DropsScores(_Steps):
    def forward(self, q, k, v, mask=None):
        scores = self.score(q, k)
        return self.normalise(_drop(scores, self.p), mask) @ v, self.normalise(scores, mask)


@mistake(
    "ScaledDotProductAttention",
    en="What survives dropout is not divided by 1 − p, so the output is too small in training.",
    zh="dropout 后留下的权重没有除以 1 − p，训练时输出偏小。",
)
class ForgetsToRescale(_Steps):
    def thin(self, attn):
        return attn * _keep(attn, self.p)


@mistake(
    "ScaledDotProductAttention",
    en="Dropout acts on the output. It belongs on the weights, before they meet the values.",
    zh="dropout 作用在了输出上。它应作用在权重上，在权重与值相乘之前。",
)
class DropsOutputs(_Steps):
    def forward(self, q, k, v, mask=None):
        attn = self.normalise(self.score(q, k), mask)
        return _drop(attn @ v, self.p), attn


@mistake(
    "ScaledDotProductAttention",
    en="q is divided in place (`q /= temperature`): its owner now holds other queries. Make a new tensor.",
    zh="原地除了 q（`q /= temperature`）：它的主人手里的查询也变了。应生成新的张量。",
)
class DividesInPlace(_Steps):
    def score(self, q, k):
        with torch.no_grad():
            q.div_(self.temperature)
        return q @ k.transpose(-2, -1)


# expand_kv


def _refuse_as_the_reference_does(function, *args):
    """Raise what the right function raises on these arguments. Its result is thrown away."""
    function(*args)


@mistake(
    "expand_kv",
    en="The heads are repeated in turn, 0 1 2 0 1 2: that is `repeat`. Neighbours share, 0 0 1 1 2 2: `repeat_interleave`.",
    zh="各头被轮流重复：0 1 2 0 1 2，这是 `repeat`。应由相邻的头共用：0 0 1 1 2 2，即 `repeat_interleave`。",
)
def repeats_the_heads_in_turn(x, num_query_heads):
    _refuse_as_the_reference_does(right.expand_kv, x, num_query_heads)
    return x.repeat(1, num_query_heads // x.shape[1], 1, 1)


@mistake(
    "expand_kv",
    en="`num_query_heads` is taken as the number of copies. It is the number of heads that must come out: copies = H / G.",
    zh="把 `num_query_heads` 当成了复制的份数。它是结果应有的头数：份数 = H / G。",
)
def copies_once_per_query_head(x, num_query_heads):
    _refuse_as_the_reference_does(right.expand_kv, x, num_query_heads)
    return x.repeat_interleave(num_query_heads, 1)


@mistake(
    "expand_kv",
    en="The number of copies is G // H, upside down. It is H // G.",
    zh="份数写成了 G // H，颠倒了。应为 H // G。",
)
def divides_the_wrong_way(x, num_query_heads):
    _refuse_as_the_reference_does(right.expand_kv, x, num_query_heads)
    return x.repeat_interleave(x.shape[1] // num_query_heads, 1)


@mistake(
    "expand_kv",
    en="The new axis comes after the positions, so the reshape scrambles positions and heads. Put it right after the KV heads: [B, G, n, L, D].",
    zh="新的轴放在了位置之后，reshape 会把位置和头搅乱。它应紧跟在键值头之后：[B, G, n, L, D]。",
)
def inserts_the_copies_behind_the_positions(x, num_query_heads):
    _refuse_as_the_reference_does(right.expand_kv, x, num_query_heads)
    batch, groups, length, width = x.shape
    copies = x[:, :, :, None].expand(batch, groups, length, num_query_heads // groups, width)
    return copies.reshape(batch, num_query_heads, length, width)


@mistake(
    "expand_kv",
    en="`expand` can only stretch an axis of size 1, so this works for a single KV head only.",
    zh="`expand` 只能拉伸大小为 1 的轴，所以只适用于仅有一个键值头的情形。",
)
def expands_a_single_head_only(x, num_query_heads):
    _refuse_as_the_reference_does(right.expand_kv, x, num_query_heads)
    return x.expand(-1, num_query_heads, -1, -1)


@mistake(
    "expand_kv",
    en="KV heads that do not divide the query heads are accepted, and too few heads come out. Raise ValueError.",
    zh="键值头数不能整除查询头数时也接受了，得到的头数不够。应抛出 ValueError。",
)
def accepts_heads_that_do_not_divide(x, num_query_heads):
    return x.repeat_interleave(num_query_heads // x.shape[1], 1)


@mistake(
    "expand_kv",
    en="The copies are cut off from the graph: no gradient comes back to the KV heads.",
    zh="副本脱离了计算图：梯度回不到键值头。",
)
def cuts_the_gradient(x, num_query_heads):
    return right.expand_kv(x.detach(), num_query_heads)


# sdpa


def _weights(scores, attn_mask, is_causal):
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None and attn_mask.is_floating_point():
        allowed = attn_mask != -torch.inf
        return right.softmax_where(scores + attn_mask.masked_fill(~allowed, 0.0), allowed)
    return right.softmax_where(scores, attn_mask)


def _expand(x, heads):
    if heads % x.shape[-3]:
        raise ValueError("heads do not divide")
    return x.repeat_interleave(heads // x.shape[-3], -3)


def _sdpa(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False,
    *, expand=_expand, weigh=_weights, drop=torch.dropout,
):  # fmt: skip
    """The right function, with steps that can be replaced."""
    if attn_mask is not None and is_causal:
        raise ValueError("both")
    if enable_gqa:
        key, value = expand(key, query.shape[-3]), expand(value, query.shape[-3])
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    weights = weigh(scores, attn_mask, is_causal)
    return (drop(weights, dropout_p, True) if drop is torch.dropout else drop(weights, dropout_p)) @ value


@mistake(
    "sdpa",
    en="`scale or default` treats 0.0 as not given. Ask `scale is None`.",
    zh="`scale or 默认值` 把 0.0 当成了「没有给」。应判断 `scale is None`。",
)
def takes_a_scale_of_zero_for_none(query, key, value, attn_mask=None, scale=None, **options):
    return right.sdpa(query, key, value, attn_mask, scale=scale or query.shape[-1] ** -0.5, **options)


@mistake("sdpa", en="`scale` is ignored.", zh="忽略了 `scale`。")
def ignores_the_scale(query, key, value, attn_mask=None, scale=None, **options):
    return right.sdpa(query, key, value, attn_mask, **options)


@mistake(
    "sdpa",
    en="The scores are divided by `scale`. In PyTorch the scale is a factor: it takes the place of 1/√d.",
    zh="分数除以了 `scale`。在 PyTorch 里它是乘数，代替的是 1/√d。",
)
def divides_by_the_scale(query, key, value, attn_mask=None, scale=None, **options):
    return right.sdpa(query, key, value, attn_mask, scale=None if scale is None else 1 / (scale or 1e-300), **options)


@mistake(
    "sdpa",
    en="`scale` is applied on top of 1/√d. It replaces it.",
    zh="`scale` 叠加在 1/√d 之上。它应当代替 1/√d。",
)
def scales_twice(query, key, value, attn_mask=None, scale=None, **options):
    return right.sdpa(query * query.shape[-1] ** (-0.5 if scale is not None else 0), key, value, attn_mask, scale=scale, **options)  # fmt: skip


@mistake("sdpa", en="`is_causal` is ignored.", zh="忽略了 `is_causal`。")
def ignores_the_causal_flag(query, key, value, attn_mask=None, is_causal=False, **options):
    return right.sdpa(query, key, value, attn_mask, is_causal=is_causal and attn_mask is not None, **options)


def _triangular(triangle):
    def weigh(scores, attn_mask, is_causal):
        if is_causal:
            ones = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
            attn_mask = triangle(ones, ones.shape[1] - ones.shape[0])
        return _weights(scores, attn_mask, False)

    return weigh


@mistake(
    "sdpa",
    en="The triangle is aligned to the lower right. That is the better rule, and the rest of this course follows it, but PyTorch documents the upper left.",
    zh="三角形对齐到了右下角。这条规则其实更好，本课其余各章也遵守它；但 PyTorch 文档规定的是左上角。",
)
def aligns_to_the_lower_right(query, key, value, attn_mask=None, **options):
    return _sdpa(query, key, value, attn_mask, **options, weigh=_triangular(lambda ones, extra: ones.tril(extra)))


@mistake(
    "sdpa",
    en="The causal mask is a square of the query length. It must be [L, S].",
    zh="因果掩码是按查询长度造的方阵。它的形状应为 [L, S]。",
)
def makes_a_square_triangle(query, key, value, attn_mask=None, **options):
    def square(ones, _):
        return torch.ones(len(ones), len(ones), dtype=torch.bool, device=ones.device).tril()

    return _sdpa(query, key, value, attn_mask, **options, weigh=_triangular(square))


@mistake(
    "sdpa",
    en="A mask and is_causal together are combined silently. Raise ValueError.",
    zh="同时给出掩码和 is_causal 时，默默地把两者合并了。应抛出 ValueError。",
)
def combines_mask_and_causal(query, key, value, attn_mask=None, is_causal=False, **options):
    if attn_mask is not None and is_causal:
        triangle = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        attn_mask, is_causal = attn_mask & triangle, False
    return right.sdpa(query, key, value, attn_mask, is_causal=is_causal, **options)


@mistake(
    "sdpa",
    en="With is_causal the mask is ignored silently: `if … elif` lets one of them win. Raise ValueError.",
    zh="给了 is_causal，掩码就被悄悄忽略了：`if … elif` 让其中一个胜出。应抛出 ValueError。",
)
def lets_the_causal_flag_win(query, key, value, attn_mask=None, is_causal=False, **options):
    return right.sdpa(query, key, value, None if is_causal else attn_mask, is_causal=is_causal, **options)


@mistake(
    "sdpa",
    en="A mask and is_causal together stop at an `assert`, as in PyTorch's reference code. Raise ValueError.",
    zh="同时给出掩码和 is_causal 时用了 `assert`（PyTorch 的参考代码就是这样）。应抛出 ValueError。",
)
def asserts_that_only_one_is_given(query, key, value, attn_mask=None, is_causal=False, **options):
    assert attn_mask is None or not is_causal
    return right.sdpa(query, key, value, attn_mask, is_causal=is_causal, **options)


@mistake(
    "sdpa",
    en="The bool mask is inverted: True was taken to mean drop, as in nn.MultiheadAttention. Here True means keep.",
    zh="布尔掩码反了：像 nn.MultiheadAttention 那样把 True 当成了「丢弃」。这里 True 表示保留。",
)
def inverts_the_bool_mask(query, key, value, attn_mask=None, **options):
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = ~attn_mask
    return right.sdpa(query, key, value, attn_mask, **options)


@mistake(
    "sdpa",
    en="The bool mask is added to the scores, as 0 and 1. It must forbid: −inf where it is False.",
    zh="把布尔掩码当作 0 和 1 加到了分数上。它应表示禁止：False 处为 −inf。",
)
def adds_the_bool_mask(query, key, value, attn_mask=None, **options):
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = attn_mask.to(query.dtype)
    return right.sdpa(query, key, value, attn_mask, **options)


@mistake(
    "sdpa",
    en="The float mask is read as 0/1, 0 = drop. PyTorch adds a float mask to the scores.",
    zh="把浮点掩码当成了 0/1 掩码，0 = 丢弃。PyTorch 会把浮点掩码加到分数上。",
)
def reads_the_float_mask_as_zero_and_one(query, key, value, attn_mask=None, **options):
    return right.sdpa(query, key, value, None if attn_mask is None else attn_mask != 0, **options)


@mistake(
    "sdpa",
    en="The float mask is added before the scale and is scaled with the scores. Scale first, then add.",
    zh="浮点掩码在缩放之前就加上了，于是跟着分数一起被缩放。应先缩放，再相加。",
)
def scales_the_bias_too(query, key, value, attn_mask=None, scale=None, **options):
    if attn_mask is not None and attn_mask.is_floating_point():
        attn_mask = attn_mask * (query.shape[-1] ** -0.5 if scale is None else scale)
    return right.sdpa(query, key, value, attn_mask, scale=scale, **options)


def _biased(scores, attn_mask, is_causal):
    """PyTorch's reference code except for the broadcasting: every mask becomes a bias that is added."""
    bias = torch.zeros(scores.shape[-2:], dtype=scores.dtype, device=scores.device)
    if is_causal:
        bias = bias.masked_fill(torch.ones_like(bias, dtype=torch.bool).tril().logical_not(), -torch.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        bias = torch.where(attn_mask, bias, -torch.inf)
    elif attn_mask is not None:
        bias = bias + attn_mask
    return torch.softmax(scores + bias, -1)


@mistake(
    "sdpa",
    en="The bias [L, S] is filled in place with the mask, as in PyTorch's reference code: a mask with batch axes cannot fit into it. Use masked_fill without the underscore, or fill the scores.",
    zh="像 PyTorch 的参考代码那样，用掩码原地填充 [L, S] 的偏置：带批次轴的掩码装不进去。应使用不带下划线的 masked_fill，或直接填充分数。",
)
def fills_the_bias_in_place(query, key, value, attn_mask=None, **options):
    def weigh(scores, mask, is_causal):
        if mask is not None and mask.dtype == torch.bool:
            # raises an error where the mask has batch axes; otherwise `_biased` gives the same result
            torch.zeros(scores.shape[-2:], device=mask.device).masked_fill_(mask.logical_not(), -torch.inf)
        return _biased(scores, mask, is_causal)

    return _sdpa(query, key, value, attn_mask, **options, weigh=weigh)


@mistake(
    "sdpa",
    en="A query that may look nowhere gets NaN, as in PyTorch's reference code. It gets 0.",
    zh="哪里都不许看的查询得到了 NaN（PyTorch 的参考代码就是这样）。应得到 0。",
)
def leaves_nan_in_empty_rows(query, key, value, attn_mask=None, **options):
    return _sdpa(query, key, value, attn_mask, **options, weigh=_biased)


@mistake(
    "sdpa",
    en="−inf is added and the NaN cleaned afterwards: the output is right, but the gradient of an empty row is NaN. Fill the scores with masked_fill instead.",
    zh="加上 −inf，事后再清掉 NaN：输出对了，但空行的梯度是 NaN。应改用 masked_fill 填充分数。",
)
def spoils_the_gradient_of_empty_rows(query, key, value, attn_mask=None, **options):
    return _sdpa(query, key, value, attn_mask, **options, weigh=lambda *scored: _biased(*scored).nan_to_num(0.0))


@mistake(
    "sdpa",
    en="The bias is float32 and `bias.to(query.dtype)` is thrown away: `.to` returns a new tensor. Assign it, or make the bias in the dtype of the query.",
    zh="偏置是 float32，而 `bias.to(query.dtype)` 的结果被扔掉了：`.to` 返回新的张量。应把它赋值回去，或直接用 query 的 dtype 造偏置。",
)
def throws_the_converted_bias_away(query, key, value, attn_mask=None, **options):
    def weigh(scores, mask, is_causal):
        weights = _weights(scores, mask, is_causal)
        bias = torch.zeros(scores.shape[-2:], device=scores.device)
        bias.to(scores.dtype)
        return weights + bias

    return _sdpa(query, key, value, attn_mask, **options, weigh=weigh)


@mistake(
    "sdpa",
    en="The KV heads are repeated in turn, 0 1 0 1 0 1: that is `repeat`. Neighbouring query heads share, 0 0 0 1 1 1: `repeat_interleave`.",
    zh="键值头被轮流重复：0 1 0 1 0 1，这是 `repeat`。应由相邻的查询头共用：0 0 0 1 1 1，即 `repeat_interleave`。",
)
def repeats_the_kv_heads_in_turn(query, key, value, attn_mask=None, **options):
    def expand(x, heads):
        _refuse_as_the_reference_does(_expand, x, heads)
        return torch.cat([x] * (heads // x.shape[-3]), -3)

    return _sdpa(query, key, value, attn_mask, **options, expand=expand)


@mistake("sdpa", en="`enable_gqa` is ignored.", zh="忽略了 `enable_gqa`。")
def ignores_enable_gqa(query, key, value, attn_mask=None, enable_gqa=False, **options):
    return right.sdpa(query, key, value, attn_mask, **options)


@mistake(
    "sdpa",
    en="The heads are looked for on axis 1. They are axis −3, whatever axes come before.",
    zh="在第 1 轴上找头。头是第 −3 轴，前面有几个轴都一样。",
)
def looks_for_heads_on_axis_one(query, key, value, attn_mask=None, **options):
    def expand(x, _):
        if query.shape[1] % x.shape[1]:
            raise ValueError("heads do not divide")
        return x.repeat_interleave(query.shape[1] // x.shape[1], 1)

    return _sdpa(query, key, value, attn_mask, **options, expand=expand)


@mistake(
    "sdpa",
    en="KV heads that do not divide the query heads run into a shape error somewhere. Say so: raise ValueError.",
    zh="键值头数不能整除查询头数时，只在某处碰上形状错误。应明确抛出 ValueError。",
)
def leaves_the_refusal_to_the_shapes(query, key, value, attn_mask=None, **options):
    def expand(x, heads):
        return x.repeat_interleave(heads // x.shape[-3], -3)

    return _sdpa(query, key, value, attn_mask, **options, expand=expand)


@mistake(
    "sdpa",
    en="Every query head attends to every KV head and the right one is picked afterwards: G times the work.",
    zh="每个查询头都对所有键值头做了注意力，事后才挑出该要的：计算量变成 G 倍。",
)
def attends_to_every_kv_head(query, key, value, attn_mask=None, enable_gqa=False, **options):
    out = right.sdpa(query, key, value, attn_mask, enable_gqa=enable_gqa, **options)
    for _ in range(key.shape[-3] - 1 if enable_gqa else 0):  # the wasted work; its results are thrown away
        right.sdpa(query, key, value, attn_mask, enable_gqa=True, **options)
    return out


@mistake("sdpa", en="`dropout_p` is ignored.", zh="忽略了 `dropout_p`。")
def ignores_dropout(query, key, value, attn_mask=None, dropout_p=0.0, **options):
    return right.sdpa(query, key, value, attn_mask, **options)


@mistake(
    "sdpa",
    en="What survives dropout is not divided by 1 − p, so the output is too small.",
    zh="dropout 后留下的权重没有除以 1 − p，输出偏小。",
)
def forgets_to_rescale(query, key, value, attn_mask=None, **options):
    return _sdpa(query, key, value, attn_mask, **options, drop=lambda weights, p: weights * _keep(weights, p))


@mistake(
    "sdpa",
    en="Dropout acts on the output. It belongs on the weights, before they meet the values.",
    zh="dropout 作用在了输出上。它应作用在权重上，在权重与值相乘之前。",
)
def drops_outputs(query, key, value, attn_mask=None, dropout_p=0.0, **options):
    return _drop(right.sdpa(query, key, value, attn_mask, **options), dropout_p)


@mistake(
    "sdpa",
    en="The query is scaled in place: its owner now holds another query. Make a new tensor.",
    zh="原地缩放了 query：它的主人手里的查询也变了。应生成新的张量。",
)
def scales_the_query_in_place(query, key, value, attn_mask=None, scale=None, **options):
    with torch.no_grad():
        query.mul_(query.shape[-1] ** -0.5 if scale is None else scale)
    return right.sdpa(query, key, value, attn_mask, scale=1.0, **options)
