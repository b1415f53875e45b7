"""Chapter 8: engineering attention.

Dropout uses the student's own random numbers, so a test checks what every right answer does. With the identity as
values the output shows the weights after dropout, and each must be 0 or weight/(1 − p). `RARELY` drops almost nothing,
so that only the scale shows; `NEARLY_ALL` drops almost everything. For both, 1 − p is exact in float32.
"""

import torch

from autograder.exam import (
    agree,
    agree_gradients,
    built,
    draw_qkv,
    gradients_match,
    left_alone,
    matches,
    promise,
    require,
    require_inputs_unchanged,
    triangle,
)
from autograder.exam.sentences import (
    ANY_LEADING_AXES,
    BLIND_QUERY_GETS_ZEROS,
    DROPOUT_ACTS_ON_WEIGHTS,
    DTYPE_STAYS,
    FORBIDDEN_SCORE_HAS_NO_EFFECT,
    GRADIENTS_WITH_BLIND_QUERIES,
    INPUTS_STAY,
    KV_HEADS_MUST_DIVIDE_THE_HEADS,
    SHARED_MASK_BROADCASTS,
)
from autograder.reference import ch08_engineering_sdpa as reference

LOW = (torch.float32, torch.float16, torch.bfloat16)
RARELY, NEARLY_ALL = 2.0**-20, 1 - 2.0**-20
MANY, NEARLY_ALL_OF_MANY = 4096, 1 - 2.0**-6  # about 64 of the keys survive; that none does is practically impossible


def telling(draw, lq=4, lk=6):
    """q, k, and the identity as values: the output is the weights."""
    q, k, _ = draw_qkv(draw, 2, 3, lq=lq, lk=lk)
    return q, k, torch.eye(lk, dtype=torch.float64).expand(2, 3, lk, lk).contiguous()


def crowd(draw):
    """One query, many keys of about equal weight, and values that are all the same number."""
    k = draw(1, 1, MANY, 4, scale=0.1)
    return draw(1, 1, 1, 4), k, torch.full((1, 1, MANY, 1), float(draw.integer(5, 9)), dtype=torch.float64)


def hidden_giant(draw, q, k):
    """Make query 2 score about 2000 on key 0, and return a mask that hides key 0 from every query."""
    k[..., 0, :] = 2000 * 3 * q[..., 2, :] / q[..., 2, :].square().sum(-1, keepdim=True)
    mask = draw.mask(*q.shape[:-1], k.shape[-2])
    mask[..., 0], mask[..., 1] = False, True
    return mask


def survivors(out, shape) -> torch.Tensor:
    """Which weights were not dropped; all of them if `out` has the wrong form, so that the comparison says so."""
    fits = isinstance(out, torch.Tensor) and out.shape == shape
    return out != 0 if fits else torch.ones(shape, dtype=torch.bool)


def share_is(name, keep, low, high):
    """The share of the weights that were dropped lies between these wide bounds."""
    share = float((~keep).double().mean())
    require(
        low <= share <= high,
        f"{name}: {share:.0%} of the weights were dropped, expected {low:.0%} to {high:.0%}",
        f"{name}：丢弃了 {share:.0%} 的权重，应在 {low:.0%} 到 {high:.0%} 之间",
    )


def mixes_the_survivors(name, out, value):
    """Of many equal values some always survive, so a mix of them is never 0 and never far from the value."""
    ratio = float(out) / float(value.max()) if isinstance(out, torch.Tensor) and out.numel() == 1 else 0.0
    require(
        0.2 < ratio < 3,
        f"{name}: 4096 equal values are mixed with most weights dropped: the mix is {ratio:.2g} times the value, "
        "expected about 1",
        f"{name}：混合 4096 个相同的值并丢弃大部分权重，结果是该值的 {ratio:.2g} 倍，应约为 1 倍",
    )


# ScaledDotProductAttention


def ScaledDotProductAttention(q, k, v, temperature, mask=None):
    """The reference module without dropout, as a formula."""
    return reference.ScaledDotProductAttention(temperature, 0.0)(q, k, v, mask)


class Thinned:
    """The same with these weights dropped. Messages use the same name."""

    __name__ = "ScaledDotProductAttention"
    returns = ("output", "attn")

    def __call__(self, q, k, v, temperature, keep, p):
        _, attn = ScaledDotProductAttention(q, k, v, temperature)
        return attn * keep / (1 - p) @ v, attn


thinned = Thinned()


class Built:
    """The student's module, in evaluation mode by default, compared with the reference."""

    def __init__(self, student, temperature, *attn_dropout, training=False):
        self.student, self.temperature = student, temperature
        self.module = built(student, "ScaledDotProductAttention", temperature, *attn_dropout).train(training)

    def keeps(self, q, k, v, *mask):
        self.agrees(self.module(q, k, v, *mask), q, k, v, *mask)

    def agrees(self, value, q, k, v, mask=None):
        seen = None if mask is None else mask != 0  # as bool, so that the mask's dtype does not set the tolerance
        agree(value, ScaledDotProductAttention, q, k, v, self.temperature, seen)

    def thins(self, q, k, v, p) -> torch.Tensor:
        """Each weight is dropped or divided by 1 − p, and attn is the one before dropout. Returns which survived."""
        value = self.module(q, k, v)
        out = value[0] if isinstance(value, tuple | list) and value else None
        keep = survivors(out, (*q.shape[:-1], k.shape[-2]))
        agree(value, thinned, q, k, v, self.temperature, keep, p)
        return keep


@promise(
    "ScaledDotProductAttention",
    en="The weights are the softmax of q·k divided by the temperature, whatever d_k is; returns (output, attn).",
    zh="权重是 q·k 除以温度之后的 softmax，与 d_k 是多少无关；返回 (output, attn)。",
    weight=2,
)
def test_scores_are_divided_by_the_temperature(student, draw):
    for temperature in (2.0, 3.0):
        Built(student, temperature, 0.0).keeps(*draw_qkv(draw, 2, 3))


@promise("ScaledDotProductAttention", ANY_LEADING_AXES)
def test_the_module_takes_any_leading_axes(student, draw):
    module = Built(student, 3.0, 0.0)
    for lead in ((), (3,), (2, 8, 3)):
        module.keeps(*draw_qkv(draw, *lead))


@promise(
    "ScaledDotProductAttention",
    en="Where the mask is 0 the key is dropped, and row i of the mask is what query i sees.",
    zh="掩码为 0 处的键被丢弃；掩码的第 i 行是查询 i 能看到的。",
)
def test_zero_in_the_mask_drops(student, draw):
    module = Built(student, 3.0, 0.0)
    module.keeps(*draw_qkv(draw, 2, 3), draw.mask(2, 3, 4, 6))
    module.keeps(*draw_qkv(draw, 2, lq=5, lk=5), triangle(5))


@promise(
    "ScaledDotProductAttention",
    en="The mask may have any dtype: integers, bytes or floating point.",
    zh="掩码可以是任意 dtype：整数、字节或浮点。",
)
def test_the_mask_may_have_any_dtype(student, draw):
    module, inputs = Built(student, 3.0, 0.0), draw_qkv(draw, 2, 3)
    for dtype in (torch.int64, torch.uint8, torch.float32):
        module.keeps(*inputs, draw.mask(2, 3, 4, 6).to(dtype))


@promise("ScaledDotProductAttention", SHARED_MASK_BROADCASTS)
def test_the_module_broadcasts_its_mask(student, draw):
    module, inputs = Built(student, 3.0, 0.0), draw_qkv(draw, 2, 3)
    for shape in ((2, 1, 1, 6), (4, 6), (3, 1, 6)):
        module.keeps(*inputs, draw.mask(*shape).long())


@promise("ScaledDotProductAttention", BLIND_QUERY_GETS_ZEROS)
def test_the_module_gives_a_blind_query_zeros(student, draw):
    mask = draw.mask(3, 4, 6)
    mask[1, 2] = False
    Built(student, 3.0, 0.0).keeps(*draw_qkv(draw, 3), mask)


@promise("ScaledDotProductAttention", FORBIDDEN_SCORE_HAS_NO_EFFECT)
def test_the_module_hides_a_huge_forbidden_score(student, draw):
    q, k, v = draw_qkv(draw, 2)
    Built(student, 3.0, 0.0).keeps(q, k, v, hidden_giant(draw, q, k))


@promise(
    "ScaledDotProductAttention",
    en="In evaluation mode nothing is dropped, however large attn_dropout is.",
    zh="评估模式下什么也不丢弃，无论 attn_dropout 多大。",
)
def test_nothing_is_dropped_in_evaluation(student, draw):
    for p in (0.5, NEARLY_ALL):
        Built(student, 3.0, p).keeps(*draw_qkv(draw, 2, 3))


@promise(
    "ScaledDotProductAttention",
    en="In training what survives is divided by 1 − p, and attn is returned as it was before dropout.",
    zh="训练时，留下的权重除以 1 − p；返回的 attn 是 dropout 之前的。",
)
def test_the_module_rescales_what_survives(student, draw):
    keep = Built(student, 3.0, RARELY, training=True).thins(*telling(draw), RARELY)
    share_is("ScaledDotProductAttention", keep, 0.0, 0.1)


@promise(
    "ScaledDotProductAttention",
    en="When dropout drops nearly everything, the output is 0 and attn is still complete; in evaluation mode the output is back.",
    zh="dropout 几乎丢光时，输出为 0，而 attn 依然完整；切到评估模式，输出就回来了。",
)
def test_the_weights_come_back_whole(student, draw):
    module, inputs = Built(student, 3.0, NEARLY_ALL, training=True), telling(draw)
    share_is("ScaledDotProductAttention", module.thins(*inputs, NEARLY_ALL), 0.9, 1.0)
    module.module.eval()
    module.keeps(*inputs)


@promise(
    "ScaledDotProductAttention",
    en="The share that is dropped is attn_dropout, 0.1 if it is not given.",
    zh="丢弃的比例就是 attn_dropout；不给时为 0.1。",
)
def test_the_dropped_share_is_what_was_asked(student, draw):
    inputs = telling(draw, lq=16, lk=40)
    for given, p, low, high in (((0.6,), 0.6, 0.45, 0.75), ((), 0.1, 0.03, 0.2)):
        keep = Built(student, 3.0, *given, training=True).thins(*inputs, p)
        share_is("ScaledDotProductAttention", keep, low, high)


@promise("ScaledDotProductAttention", DROPOUT_ACTS_ON_WEIGHTS)
def test_the_module_drops_weights_not_outputs(student, draw):
    module = Built(student, 2.0, NEARLY_ALL_OF_MANY)
    module.keeps(*draw_qkv(draw, 2))
    q, k, v = crowd(draw)
    value = module.module.train()(q, k, v)
    out = value[0] if isinstance(value, tuple | list) and value else None
    mixes_the_survivors("ScaledDotProductAttention", out, v)


@promise("ScaledDotProductAttention", GRADIENTS_WITH_BLIND_QUERIES)
def test_the_modules_gradients_are_right(student, draw):
    q, k, v = draw_qkv(draw, 2)
    mask = draw.mask(2, 4, 6)
    mask[0, 1] = False
    asked = {"wrt": (0, 1, 2), "cotangents": (draw(2, 4, 7), draw(2, 4, 6))}
    module = Built(student, 2.0, 0.0)
    found = module.module.vjp(q, k, v, mask, **asked)
    module.agrees(found.value, q, k, v, mask)
    agree_gradients(found.gradients, ScaledDotProductAttention, q, k, v, 2.0, mask, **asked)


@promise(
    "ScaledDotProductAttention",
    en="Works in float32 and in 16 bits, also with masks and for queries that may look nowhere.",
    zh="在 float32 和 16 位下都正确，包括掩码和哪里都不许看的查询。",
)
def test_the_module_in_lower_precision(student, draw):
    for dtype in LOW:
        mask = draw.mask(2, 4, 6)
        mask[1, 3] = False
        Built(student, 3.0, 0.0).keeps(*draw_qkv(draw, 2, dtype=dtype), mask)


@promise("ScaledDotProductAttention", INPUTS_STAY)
def test_the_module_leaves_its_inputs_alone(student, draw):
    module, inputs = Built(student, 2.0, 0.0), (*draw_qkv(draw, 3), draw.mask(3, 4, 6).double())
    module.keeps(*inputs)
    require_inputs_unchanged(student, "ScaledDotProductAttention")
    module.keeps(*inputs)


# expand_kv


@promise(
    "expand_kv",
    en="Neighbouring query heads share a KV head: query head h reads head h // (H/G).",
    zh="相邻的查询头共用一个键值头：查询头 h 读的是第 h // (H/G) 个。",
    weight=2,
)
def test_neighbouring_query_heads_share_a_kv_head(student, draw):
    matches(student, reference.expand_kv, draw(2, 3, 5, 4), 6)
    matches(student, reference.expand_kv, draw(3, 2, draw.integer(4, 6), 7), 8)


@promise(
    "expand_kv",
    en="Entries are only copied: whole numbers stay exactly what they were.",
    zh="元素只是被复制：整数一个也不变。",
)
def test_expanding_computes_nothing(student, draw):
    matches(student, reference.expand_kv, draw.permutation(2 * 3 * 5 * 4).view(2, 3, 5, 4), 9)


@promise(
    "expand_kv",
    en="One KV head for all query heads (MQA) and one for each (plain multi-head) both work.",
    zh="所有查询头共用一个键值头（MQA），或每个查询头各有一个（普通多头），也都正确。",
)
def test_one_kv_head_for_all_and_one_for_each(student, draw):
    matches(student, reference.expand_kv, draw(2, 1, 3, 4), 5)
    matches(student, reference.expand_kv, draw(2, 5, 3, 4), 5)


@promise(
    "expand_kv",
    en="A KV head's gradient is the sum over the query heads that read it.",
    zh="键值头的梯度，是读它的各个查询头的梯度之和。",
)
def test_gradients_add_up_over_the_readers(student, draw):
    cotangents = (draw(2, 6, 5, 4),)
    gradients_match(student, reference.expand_kv, draw(2, 3, 5, 4), 6, wrt=(0,), cotangents=cotangents)


@promise("expand_kv", DTYPE_STAYS)
def test_expanding_keeps_the_dtype(student, draw):
    for dtype in LOW:
        matches(student, reference.expand_kv, draw(2, 3, 5, 4, dtype=dtype), 6)


@promise("expand_kv", KV_HEADS_MUST_DIVIDE_THE_HEADS)
def test_expanding_refuses_heads_that_do_not_divide(student, draw):
    for groups, heads in ((4, 6), (6, 3)):
        require(
            student.refuses("expand_kv", draw(2, groups, 5, 7), heads),
            f"expand_kv: {groups} KV heads and {heads} query heads must raise ValueError",
            f"expand_kv：{groups} 个键值头、{heads} 个查询头，应抛出 ValueError",
        )
    matches(student, reference.expand_kv, draw(2, 3, 5, 7), 6)


@promise("expand_kv", INPUTS_STAY)
def test_expanding_leaves_its_input_alone(student, draw):
    left_alone(student, reference.expand_kv, draw(3, 2, 5, 7), 4)


# sdpa


class ThinnedSdpa:
    """sdpa with these weights dropped. Messages use the same name."""

    __name__ = "sdpa"

    def __call__(self, query, key, value, keep, p):
        _, attn = ScaledDotProductAttention(query, key, value, query.shape[-1] ** 0.5)
        return attn * keep / (1 - p) @ value


thinned_sdpa = ThinnedSdpa()


def thins(student, q, k, v, p) -> torch.Tensor:
    """Each weight is dropped or divided by 1 − p. Returns which survived."""
    out = student.sdpa(q, k, v, dropout_p=p)
    keep = survivors(out, (*q.shape[:-1], k.shape[-2]))
    agree(out, thinned_sdpa, q, k, v, keep, p)
    return keep


def biased(mask, draw):
    """A float mask: any number where the bool mask allows, −inf elsewhere."""
    return draw(*mask.shape).masked_fill(~mask, -torch.inf)


def grouped(draw, *lead, heads=6, groups=2, lq=5, lk=7, d=4, e=3):
    """q of `heads`, k and v of `groups` heads."""
    return draw(*lead, heads, lq, d), draw(*lead, groups, lk, d), draw(*lead, groups, lk, e)


@promise(
    "sdpa",
    en="Without options it is attention with scale 1/√d, for values of any width.",
    zh="不给任何选项时，就是缩放为 1/√d 的注意力，值可以是任意宽度。",
    weight=2,
)
def test_without_options_it_is_plain_attention(student, draw):
    matches(student, reference.sdpa, *draw_qkv(draw, 2, 3))
    matches(student, reference.sdpa, *draw_qkv(draw, 2, 3, lq=7, lk=5, d=4, e=draw.integer(8, 10)))


@promise("sdpa", ANY_LEADING_AXES)
def test_any_leading_axes(student, draw):
    for lead in ((), (3,), (2, 8, 3)):
        matches(student, reference.sdpa, *draw_qkv(draw, *lead))


@promise(
    "sdpa",
    en="`scale` multiplies the scores in place of 1/√d; it may also be a tensor without axes.",
    zh="`scale` 代替 1/√d 去乘分数；它也可以是零维张量。",
)
def test_the_scale_is_obeyed(student, draw):
    matches(student, reference.sdpa, *draw_qkv(draw, 2, 3), scale=0.25)
    matches(student, reference.sdpa, *draw_qkv(draw, 2, 3), scale=torch.tensor(0.75, dtype=torch.float64))


@promise("sdpa", en="scale=0.0 is a scale too: a plain average.", zh="scale=0.0 也是一种缩放：得到普通平均。")
def test_a_scale_of_zero_is_obeyed(student, draw):
    matches(student, reference.sdpa, *draw_qkv(draw, 2, 3), scale=0.0)


@promise(
    "sdpa",
    en="is_causal: query i sees the keys 0 … i and none after.",
    zh="is_causal：查询 i 看到键 0 … i，看不到之后的。",
)
def test_causal_hides_the_future(student, draw):
    matches(student, reference.sdpa, *draw_qkv(draw, 2, 3, lq=5, lk=5), is_causal=True)


@promise(
    "sdpa",
    en="With different lengths is_causal is aligned to the upper left, as PyTorch documents: query 0 sees only key 0.",
    zh="长度不同时，is_causal 仍对齐左上角（PyTorch 文档的规定）：查询 0 只看到键 0。",
)
def test_causal_is_aligned_to_the_upper_left(student, draw):
    matches(student, reference.sdpa, *draw_qkv(draw, 2, 3), is_causal=True)
    matches(student, reference.sdpa, *draw_qkv(draw, 2, 3, lq=8, lk=5), is_causal=True)


@promise(
    "sdpa",
    en="A bool mask is True where a query may look.",
    zh="布尔掩码为 True 处，查询可以看。",
)
def test_a_bool_mask_keeps_where_true(student, draw):
    matches(student, reference.sdpa, *draw_qkv(draw, 2, 3), attn_mask=draw.mask(4, 6))
    matches(student, reference.sdpa, *draw_qkv(draw, 2, lq=5, lk=5), attn_mask=triangle(5))


@promise(
    "sdpa",
    en="Masks with batch and head axes broadcast, in every form: [B, H, L, S], [B, 1, L, S], [B, 1, 1, S], [H, 1, S] …",
    zh="带批次轴和头轴的掩码，各种形式都能广播：[B, H, L, S]、[B, 1, L, S]、[B, 1, 1, S]、[H, 1, S]……",
)
def test_masks_of_every_form_broadcast(student, draw):
    inputs = draw_qkv(draw, 2, 3)
    for shape in ((2, 3, 4, 6), (2, 1, 4, 6), (2, 1, 1, 6), (3, 1, 6), (1, 6)):
        mask = draw.mask(*shape)
        matches(student, reference.sdpa, *inputs, attn_mask=mask)
        matches(student, reference.sdpa, *inputs, attn_mask=biased(mask, draw))


@promise(
    "sdpa",
    en="A float mask is added to the scores, after the scale: finite numbers shift them, −inf forbids.",
    zh="浮点掩码在缩放之后加到分数上：有限数使分数移动，−inf 表示禁止。",
)
def test_a_float_mask_is_added(student, draw):
    inputs = draw_qkv(draw, 2, 3)
    matches(student, reference.sdpa, *inputs, attn_mask=draw(4, 6))
    matches(student, reference.sdpa, *inputs, attn_mask=biased(draw.mask(4, 6), draw), scale=0.5)


@promise(
    "sdpa",
    en="A query that may look nowhere gets 0, whether a bool mask or −inf forbids all keys.",
    zh="哪里都不许看的查询得到 0，无论是布尔掩码还是 −inf 造成的。",
)
def test_a_blind_query_gets_zeros(student, draw):
    inputs, mask = draw_qkv(draw, 2, 3), draw.mask(4, 6)
    mask[2] = False
    matches(student, reference.sdpa, *inputs, attn_mask=mask)
    matches(student, reference.sdpa, *inputs, attn_mask=biased(mask, draw))


@promise(
    "sdpa",
    en="attn_mask and is_causal together raise ValueError.",
    zh="同时给出 attn_mask 和 is_causal 时，抛出 ValueError。",
)
def test_a_mask_and_the_causal_flag_are_refused(student, draw):
    inputs, mask = draw_qkv(draw, 2, 3, lq=5, lk=5), draw.mask(5, 5)
    mask[:, 0] = True
    require(
        student.refuses("sdpa", *inputs, attn_mask=mask, is_causal=True),
        "sdpa: attn_mask and is_causal=True together must raise ValueError",
        "sdpa：同时给出 attn_mask 和 is_causal=True 时应抛出 ValueError",
    )
    matches(student, reference.sdpa, *inputs, attn_mask=mask, is_causal=False)


@promise(
    "sdpa",
    en="enable_gqa: neighbouring query heads share a KV head.",
    zh="enable_gqa：相邻的查询头共用一个键值头。",
    weight=2,
)
def test_query_heads_share_kv_heads(student, draw):
    matches(student, reference.sdpa, *grouped(draw, 2), enable_gqa=True)
    matches(student, reference.sdpa, *grouped(draw, 3, heads=8, groups=4), is_causal=True, enable_gqa=True)


@promise(
    "sdpa",
    en="The heads are axis −3, whatever axes come before; masks still apply to query heads.",
    zh="头总是第 −3 轴，前面有几个轴都一样；掩码说的仍是查询头。",
)
def test_heads_are_the_third_axis_from_the_end(student, draw):
    matches(student, reference.sdpa, *grouped(draw), enable_gqa=True)
    matches(student, reference.sdpa, *grouped(draw, 2, 3, heads=8), enable_gqa=True)
    matches(student, reference.sdpa, *grouped(draw, 2), attn_mask=draw.mask(2, 6, 5, 7), enable_gqa=True)


@promise("sdpa", KV_HEADS_MUST_DIVIDE_THE_HEADS)
def test_heads_that_do_not_divide_are_refused(student, draw):
    require(
        student.refuses("sdpa", *grouped(draw, 2, heads=6, groups=4), enable_gqa=True),
        "sdpa: 4 KV heads and 6 query heads must raise ValueError",
        "sdpa：4 个键值头、6 个查询头，应抛出 ValueError",
    )
    matches(student, reference.sdpa, *grouped(draw, 2), enable_gqa=True)


@promise(
    "sdpa",
    en="Sharing KV heads neither saves nor costs work: the FLOPs are the same as with one KV head per query head.",
    zh="共用键值头既不省计算也不多算：浮点运算次数与每个查询头各有键值头时相同。",
)
def test_sharing_costs_no_more_work(student, draw):
    q, k, v = grouped(draw, 2, heads=6, groups=3, lq=16, lk=20, d=9, e=8)
    matches(student, reference.sdpa, q, k, v, enable_gqa=True)
    shared = student.measure("sdpa", q, k, v, enable_gqa=True).get("flops", 0)
    full = student.measure("sdpa", q, reference.expand_kv(k, 6), reference.expand_kv(v, 6)).get("flops", 0)
    require(
        shared <= 1.5 * full,
        f"sdpa: {shared} FLOPs with 3 KV heads for 6 query heads, {full} with 6",
        f"sdpa：6 个查询头共用 3 个键值头时 {shared} 次浮点运算，用 6 个键值头时 {full} 次",
    )


@promise(
    "sdpa",
    en="What survives dropout is divided by 1 − p.",
    zh="dropout 后留下的权重除以 1 − p。",
)
def test_what_survives_is_rescaled(student, draw):
    share_is("sdpa", thins(student, *telling(draw), RARELY), 0.0, 0.1)


@promise(
    "sdpa",
    en="dropout_p always acts: no mode switches it off, only 0.0 does.",
    zh="dropout_p 总是起作用：没有可以关掉它的模式，只有传 0.0。",
)
def test_dropout_always_acts(student, draw):
    inputs = telling(draw)
    matches(student, reference.sdpa, *inputs, dropout_p=0.0)
    share_is("sdpa", thins(student, *inputs, NEARLY_ALL), 0.9, 1.0)


@promise(
    "sdpa",
    en="The share that is dropped is dropout_p, and every call draws again.",
    zh="丢弃的比例就是 dropout_p，而且每次调用都重新抽取。",
)
def test_the_share_is_dropout_p(student, draw):
    inputs = telling(draw, lq=16, lk=40)
    first, second = (thins(student, *inputs, 0.3) for _ in range(2))
    share_is("sdpa", first, 0.2, 0.4)
    require(
        not torch.equal(first, second),
        "sdpa: two calls drop the same weights",
        "sdpa：两次调用丢弃的权重完全相同",
    )


@promise("sdpa", DROPOUT_ACTS_ON_WEIGHTS)
def test_weights_are_dropped_not_outputs(student, draw):
    matches(student, reference.sdpa, *draw_qkv(draw, 2, 3))
    q, k, v = crowd(draw)
    mixes_the_survivors("sdpa", student.sdpa(q, k, v, dropout_p=NEARLY_ALL_OF_MANY), v)


@promise("sdpa", FORBIDDEN_SCORE_HAS_NO_EFFECT)
def test_a_huge_forbidden_score_stays_hidden(student, draw):
    q, k, v = draw_qkv(draw, 2, 3)
    matches(student, reference.sdpa, q, k, v, attn_mask=hidden_giant(draw, q, k))


@promise(
    "sdpa",
    en="Gradients are right, those of a float mask too, and finite for queries that may look nowhere.",
    zh="梯度正确，浮点掩码的梯度也正确；哪里都不许看的查询，梯度也是有限的。",
)
def test_gradients_are_right(student, draw):
    q, k, v = draw_qkv(draw, 2, 3)
    cotangents, mask = (draw(2, 3, 4, 7),), draw.mask(4, 6)
    gradients_match(student, reference.sdpa, q, k, v, draw(4, 6), wrt=(0, 1, 2, 3), cotangents=cotangents)
    mask[1] = False
    for blinding in (mask, biased(mask, draw)):
        gradients_match(student, reference.sdpa, q, k, v, blinding, wrt=(0, 1, 2), cotangents=cotangents)


@promise(
    "sdpa",
    en="Works in float32 and in 16 bits, with every kind of mask.",
    zh="在 float32 和 16 位下都正确，各种掩码都行。",
)
def test_lower_precision(student, draw):
    for dtype in LOW:
        inputs, mask = draw_qkv(draw, 2, 3, dtype=dtype), draw.mask(2, 1, 4, 6)
        matches(student, reference.sdpa, *inputs, attn_mask=mask)
        matches(student, reference.sdpa, *inputs, attn_mask=biased(mask, draw).to(dtype))
        matches(student, reference.sdpa, *inputs, is_causal=True)


@promise("sdpa", INPUTS_STAY)
def test_inputs_are_left_alone(student, draw):
    left_alone(student, reference.sdpa, *draw_qkv(draw, 2, 3), biased(draw.mask(2, 3, 4, 6), draw))
    left_alone(student, reference.sdpa, *draw_qkv(draw, 2, 3), draw.mask(2, 3, 4, 6))
