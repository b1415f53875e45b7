"""Chapter 10: three multi-head modules with their contracts, a converter of weights, and sequences end to end.

Dropout is random, so what was dropped is read off the answer (`Probe`), and everything else is then known exactly. A diagnosis
is given what the answer shows, which does not depend on what happened to be dropped.
"""

import math
from typing import ClassVar

import torch
from torch.nn import functional as F

from autograder.exam import (
    PRECISIONS,
    SIGMAS,
    Loaded,
    ModuleFormula,
    agree,
    built,
    gradients_match,
    left_alone,
    matches,
    promise,
    require,
    require_refused,
    triangle,
    wrong,
)
from autograder.exam.sentences import (
    BLIND_QUERY_GETS_THE_BIAS,
    DTYPE_STAYS,
    FLOAT32_AND_BFLOAT16,
    GRADIENTS_OF_ALL_LAYERS,
    INPUTS_STAY,
    NO_BIAS_ANYWHERE,
)
from autograder.reference import ch10_engineering_mha as reference

EPS = {"MultiHeadAttention": 1e-5, "JadoreMHA": 1e-6}


class Evaluated(Loaded):
    """In evaluation mode, because dropout acts in training."""

    training = False

    def settles(self, *inputs):
        """In evaluation two calls agree. If they do not, that is all there is to diagnose."""
        first, second = (tensors_in(self.module(*inputs)) for _ in range(2))
        if not all(
            x.shape == y.shape and torch.allclose(x, y, equal_nan=True) for x, y in zip(first, second, strict=False)
        ):
            self.student.replace_transcript(["never twice the same"])
            raise wrong(
                f"{self.name}: in evaluation two calls give different results; does dropout stop?",
                f"{self.name}：评估时两次调用的结果不同；dropout 停了吗？",
            )


def tensors_in(value) -> list[torch.Tensor]:
    values = value if isinstance(value, tuple | list) else [value]
    return [x.double() for x in values if isinstance(x, torch.Tensor)]


def sequences(draw, widths, lq=5, lk=7, batch=2, dtype=torch.float64):
    """query, key, value, batch first."""
    lengths = (lq, lk, lk)
    return tuple(draw(batch, length, width, dtype=dtype) for length, width in zip(lengths, widths, strict=True))


def post(student, draw, width=12, heads=3, dtype=torch.float64) -> Evaluated:
    return Evaluated(student, draw, reference.MultiHeadAttention, width, heads, dtype=dtype)


def jadore(student, draw, heads=3, width=10, d_k=4, d_v=6, dtype=torch.float64) -> Evaluated:
    return Evaluated(student, draw, reference.JadoreMHA, heads, width, d_k, d_v, dtype=dtype)


def packed(student, draw, widths=(10, 10, 10), total=12, heads=3, dtype=torch.float64, **options) -> Evaluated:
    return Evaluated(student, draw, reference.PackedMHA, *widths, total, heads, dtype=dtype, **options)


WIDTH = {"MultiHeadAttention": 12, "JadoreMHA": 10, "PackedMHA": 10}
SEPARATE = (8, 10, 14)


def inputs_for(draw, name, **sizes):
    return sequences(draw, (WIDTH[name],) * 3, **sizes)


def blinding(draw, batch=2, lq=5, lk=7):
    """A mask for each sample in which query 2 of sample 1 may look nowhere."""
    mask = draw.mask(batch, lq, lk)
    mask[1, 2] = False
    return mask


# Dropout, the same way for all three modules


class Probe:
    """One key, so every weight is 1, and layers that copy: a dropped weight silences a head, a dropped output a feature.

    The values are 1 in three quarters of a head's features and 0 in the others, the anchors, which show the residual.
    """

    SIZES: ClassVar[dict] = {
        "MultiHeadAttention": (32, 2),
        "JadoreMHA": (2, 32, 16, 16),
        "PackedMHA": (32, 32, 32, 32, 2),
    }
    BATCH, LENGTH, WIDTH, HEADS = 3, 150, 32, 2
    FEW = 8  # tokens that are compared by value; shares are counted over all

    def __init__(self, student, draw, name, *, training, **dropout):
        self.student, self.name, self.training = student, name, training
        self.p = dropout.get("dropout", 0.0 if name == "PackedMHA" else 0.1) if training else 0.0
        self.value_row = torch.tensor(([1.0] * 12 + [0.0] * 4) * 2, dtype=torch.float64)
        self.query = draw(self.BATCH, self.LENGTH, self.WIDTH, scale=0.1)
        module = built(student, name, *self.SIZES[name], **dropout).to(torch.float64).train(training)
        module.load(**self.copying(ModuleFormula(getattr(reference, name), *self.SIZES[name])))
        one = self.value_row.expand(self.BATCH, 1, self.WIDTH)
        self.answer = module(self.query, draw(self.BATCH, 1, self.WIDTH), one.clone())

    def copying(self, layers):
        one = torch.eye(self.WIDTH, dtype=torch.float64)
        named = {}
        for name, shape in layers.shapes.items():
            zero = torch.zeros(shape, dtype=torch.float64)
            named[name] = one.repeat(shape[0] // self.WIDTH, 1) if len(shape) == 2 else zero
        if "layer_norm.weight" in named:
            named["layer_norm.weight"] += 1
        return named

    def keeps(self) -> None:
        """The answer is right, given what was dropped, and the right share was."""
        p = self.p
        kept = self.kept()
        self.student.replace_transcript(self.shows(kept))
        random = 0 < p < 1 and kept is not None
        if not random:
            kept = torch.full_like(self.query, float(p == 0))
        few = (slice(None), slice(self.FEW)) if random else ()
        agree(self.cut(self.answer, few), self.expected(), self.query[few], self.value_row, kept[few], p)
        if random:
            self.require_share(self.blocks(kept).any(-1), "the weights", "权重")
            if self.name in EPS:
                self.require_share(self.blocks(kept)[self.blocks(kept).any(-1)], "the outputs", "输出")

    def cut(self, answer, few):
        if not few or not isinstance(answer, tuple | list):
            return answer[few] if few and isinstance(answer, torch.Tensor) else answer
        places = (few, (few[0], slice(None), few[1]))
        return tuple(
            x[place] if isinstance(x, torch.Tensor) and x.dim() >= 3 else x
            for x, place in zip(answer, places, strict=False)
        )

    def output(self):
        return self.answer[0] if isinstance(self.answer, tuple | list) and self.answer else self.answer

    def kept(self):
        """Where a feature shows its value, as numbers; None if this is no answer."""
        out = self.output()
        if not isinstance(out, torch.Tensor) or out.shape != self.query.shape or not out.isfinite().all():
            return None
        if self.name not in EPS:
            return (out != 0).to(self.query) + 0 * self.query
        middle = (out.amax(-1, keepdim=True) + out.amin(-1, keepdim=True)) / 2
        alone = F.layer_norm(self.query, (self.WIDTH,), eps=EPS[self.name])
        silent = (out - alone).abs().amax(-1, keepdim=True) < 1e-6
        return ((out > middle) & ~silent).to(self.query)

    def blocks(self, kept):
        """[B, L, H, 12]: the features that show whether they were dropped, by head."""
        return kept.unflatten(-1, (self.HEADS, -1))[..., :12] > 0

    def shows(self, kept) -> list:
        """What the answer shows, whichever weights it dropped."""
        p, weights = self.p, self.answer[1:] if isinstance(self.answer, tuple | list) else ()
        if kept is None:
            return [self.answer]
        likely = (0.0, 0.1, 0.4, 0.64, 1.0)
        seen = [near(zeros(self.output()[..., self.value_row > 0]), likely), self.steady()]
        if self.steady():
            blocks = self.blocks(kept)
            alive = blocks.any(-1)
            seen += [near(zeros(alive), likely), near(zeros(blocks[alive]), likely) if alive.any() else None]
        seen += [[near(zeros(w), likely), near(float(w.max()), (1.0, 1 / (1 - min(p, 0.9)), 0.0))] for w in weights]
        return seen

    def steady(self) -> bool:
        """Whether the anchors show the residual, stretched and shifted, as they do when nothing happens to it."""
        if self.name not in EPS:
            return True
        anchors = self.value_row == 0
        x, y = self.query[..., anchors], self.output()[..., anchors]
        x, y = x - x.mean(-1, keepdim=True), y - y.mean(-1, keepdim=True)
        off = y - x * (x * y).sum(-1, keepdim=True) / (x * x).sum(-1, keepdim=True)
        return bool((off.abs().amax(-1) < 1e-6).double().mean() > 0.5)

    def require_share(self, kept, en, zh) -> None:
        p, gone = self.p, zeros(kept)
        allowed = SIGMAS * math.sqrt(p * (1 - p) / max(kept.numel(), 1))
        require(
            abs(gone - p) <= allowed,
            f"{self.name}: with dropout = {p:g}, {gone:.1%} of {en} are dropped; {allowed:.1%} off is allowed",
            f"{self.name}：dropout = {p:g} 时丢掉了 {gone:.1%} 的{zh}，允许相差 {allowed:.1%}",
        )

    def expected(self):
        return EXPECTED[self.name]


def near(number, likely) -> float:
    return min(likely, key=lambda other: abs(other - number))


def zeros(x) -> float:
    return float((x == 0).double().mean()) if isinstance(x, torch.Tensor) and x.numel() else 0.0


def expectation(name):
    def formula(query, row, kept, p):
        out = kept * row if p in (0, 1) else kept * row / (1 - p) ** (2 if name in EPS else 1)
        if name not in EPS:
            return out
        weights = torch.ones(query.shape[0], Probe.HEADS, query.shape[1], 1, dtype=query.dtype)
        return F.layer_norm(query + out, (Probe.WIDTH,), eps=EPS[name]), weights

    formula.__name__ = name
    return formula


EXPECTED = {name: expectation(name) for name in Probe.SIZES}


# MultiHeadAttention


@promise(
    "MultiHeadAttention",
    en="The output is LayerNorm(Q + W_O(heads)), and the weights of every head come with it.",
    zh="输出是 LayerNorm(Q + W_O(各头))，同时返回每个头的权重。",
    weight=2,
)
def test_the_post_norm_sublayer(student, draw):
    mha = post(student, draw)
    mha.settles(*inputs_for(draw, "MultiHeadAttention"))
    mha.keeps(*inputs_for(draw, "MultiHeadAttention", lk=5))
    mha.keeps(*inputs_for(draw, "MultiHeadAttention"))


@promise(
    "MultiHeadAttention",
    en="With W_O = 0 nothing is left of the attention: the output is LayerNorm(Q), not 0.",
    zh="W_O = 0 时注意力荡然无存：输出是 LayerNorm(Q)，而不是 0。",
)
def test_without_an_output_layer_the_norm_of_the_query_is_left(student, draw):
    mha = post(student, draw)
    mha.reload(W_O=torch.zeros_like(mha.layers["W_O"])).keeps(*inputs_for(draw, "MultiHeadAttention"))


@promise(
    "MultiHeadAttention",
    en="The eps of the norm is 1e-5, as small tokens show.",
    zh="层归一化的 eps 是 1e-5：词元很小时看得出来。",
)
def test_the_eps_of_the_post_norm(student, draw):
    small_tokens(post(student, draw), "W_O", draw, "MultiHeadAttention")


def small_tokens(mha, last, draw, name):
    query, key, value = inputs_for(draw, name)
    mha.reload(**{last: mha.layers[last] * 1e-3}).keeps(query * 1e-3, key, value)


@promise(
    "MultiHeadAttention",
    en="A mask [B, Lq, Lk] holds for its own sample, in all heads; 0 drops.",
    zh="掩码 [B, Lq, Lk] 只管各自的样本，对所有头有效；0 表示丢弃。",
)
def test_a_mask_for_each_sample(student, draw):
    mha = post(student, draw)
    mha.keeps(*inputs_for(draw, "MultiHeadAttention", batch=3), mask=draw.mask(3, 5, 7))
    mha.keeps(*inputs_for(draw, "MultiHeadAttention"), mask=draw.mask(2, 5, 7))


@promise(
    "MultiHeadAttention",
    en="A mask [Lq, Lk] holds for all samples and heads, also with as many tokens as heads.",
    zh="掩码 [Lq, Lk] 对所有样本和头有效，词元数恰好等于头数时也一样。",
)
def test_a_mask_for_all_samples(student, draw):
    mha = post(student, draw)
    mha.keeps(*inputs_for(draw, "MultiHeadAttention", lq=3, lk=3), mask=triangle(3))
    mha.keeps(*inputs_for(draw, "MultiHeadAttention"), mask=draw.mask(5, 7))


@promise(
    "MultiHeadAttention",
    en="The mask may have any dtype: bool, integer or floating point.",
    zh="掩码可以是任意 dtype：布尔、整数或浮点。",
)
def test_a_mask_of_any_dtype(student, draw):
    mha, inputs = post(student, draw), inputs_for(draw, "MultiHeadAttention")
    for dtype in (torch.int64, torch.float32):
        mha.keeps(*inputs, mask=draw.mask(2, 5, 7).to(dtype))


@promise(
    "MultiHeadAttention",
    en="A query that may look nowhere has weights 0 and keeps LayerNorm(Q + the bias of W_O).",
    zh="哪里都不许看的查询，权重为 0，输出 LayerNorm(Q + W_O 的偏置)。",
)
def test_a_blind_query_keeps_its_residual(student, draw):
    post(student, draw).keeps(*inputs_for(draw, "MultiHeadAttention"), mask=blinding(draw))


@promise("MultiHeadAttention", GRADIENTS_OF_ALL_LAYERS)
def test_gradients_of_the_post_norm_sublayer(student, draw):
    cotangents = (draw(2, 5, 12), draw(2, 3, 5, 7))
    post(student, draw).differentiates(
        *inputs_for(draw, "MultiHeadAttention"), cotangents=cotangents, mask=blinding(draw)
    )


@promise(
    "MultiHeadAttention",
    en="In training a share `dropout` of the weights is dropped, and then of the outputs of W_O, before the residual.",
    zh="训练时，先按 dropout 的比例丢弃权重，再丢弃 W_O 的输出，都在加残差之前。",
)
def test_both_dropouts_of_the_post_norm_sublayer(student, draw):
    Probe(student, draw, "MultiHeadAttention", training=True, dropout=0.4).keeps()


@promise(
    "MultiHeadAttention",
    en="In evaluation nothing is dropped; in training dropout=0.0 drops nothing either, and dropout=1.0 leaves LayerNorm(Q).",
    zh="评估时什么也不丢；训练时 dropout=0.0 也什么都不丢，dropout=1.0 只剩下 LayerNorm(Q)。",
)
def test_dropout_of_the_post_norm_sublayer_can_be_off(student, draw):
    for dropout, training in ((0.4, False), (0.0, True), (1.0, True)):
        Probe(student, draw, "MultiHeadAttention", training=training, dropout=dropout).keeps()


@promise(
    "MultiHeadAttention",
    en="By default d_model is 512, n_heads 8 and dropout 0.1.",
    zh="默认 d_model 为 512，n_heads 为 8，dropout 为 0.1。",
)
def test_the_defaults_of_the_post_norm_sublayer(student, draw):
    x = draw(2, 3, 512, dtype=torch.float32)
    value = built(student, "MultiHeadAttention").eval()(x, x, x)
    shapes = [list(t.shape) for t in value if isinstance(t, torch.Tensor)] if isinstance(value, tuple | list) else []
    require(
        shapes == [[2, 3, 512], [2, 8, 3, 3]],
        f"MultiHeadAttention(): shapes {shapes}, expected [2, 3, 512] and [2, 8, 3, 3]",
        f"MultiHeadAttention()：形状为 {shapes}，应为 [2, 3, 512] 和 [2, 8, 3, 3]",
    )
    Probe(student, draw, "MultiHeadAttention", training=True).keeps()


@promise("MultiHeadAttention", FLOAT32_AND_BFLOAT16)
def test_the_post_norm_sublayer_in_lower_precision(student, draw):
    for dtype in PRECISIONS:
        mha = post(student, draw, width=10, heads=2, dtype=dtype)
        mha.keeps(*sequences(draw, (10, 10, 10), batch=3, dtype=dtype), mask=draw.mask(3, 5, 7))


@promise(
    "MultiHeadAttention",
    en="Heads that do not divide d_model, and a dropout outside [0, 1], raise ValueError.",
    zh="头数不能整除 d_model，或 dropout 不在 [0, 1] 内，都抛出 ValueError。",
)
def test_what_the_post_norm_sublayer_refuses(student, draw):
    name = "MultiHeadAttention"
    post(student, draw).keeps(*inputs_for(draw, name))
    x = sequences(draw, (10, 10, 10), dtype=torch.float32)
    what = {"en": "heads that do not divide d_model", "zh": "头数不能整除 d_model "}
    require_refused(student, name, 10, 3, inputs=x, train=True, **what)
    what = {"en": "dropout = 1.5", "zh": "dropout = 1.5 "}
    require_refused(student, name, 10, 2, dropout=1.5, inputs=x, train=True, **what)


@promise("MultiHeadAttention", INPUTS_STAY)
def test_the_post_norm_sublayer_leaves_its_inputs_alone(student, draw):
    mask = draw.mask(2, 5, 7).double()
    post(student, draw).leaves_alone(*inputs_for(draw, "MultiHeadAttention"), mask=mask)


# JadoreMHA


@promise(
    "JadoreMHA",
    en="Heads of width d_k for queries and keys and d_v for values, no biases, then LayerNorm(q + fc(heads)).",
    zh="查询和键的头宽 d_k，值的头宽 d_v，没有偏置，最后是 LayerNorm(q + fc(各头))。",
    weight=2,
)
def test_separate_widths_for_keys_and_values(student, draw):
    mha = jadore(student, draw)
    mha.settles(*inputs_for(draw, "JadoreMHA"))
    mha.keeps(*inputs_for(draw, "JadoreMHA", lk=5))
    mha.keeps(*inputs_for(draw, "JadoreMHA"))


@promise("JadoreMHA", en="None of the four linear layers has a bias.", zh="四个线性层都没有偏置。")
def test_there_are_no_biases(student, draw):
    mha = jadore(student, draw)
    for name in ("w_qs", "w_ks", "w_vs", "fc"):
        require(
            not mha.has_bias(name, draw),
            f"JadoreMHA: {name} has a bias",
            f"JadoreMHA：{name} 带有偏置",
        )
    mha.keeps(*inputs_for(draw, "JadoreMHA"))


@promise(
    "JadoreMHA",
    en="The eps of the norm is 1e-6, as small tokens show.",
    zh="层归一化的 eps 是 1e-6：词元很小时看得出来。",
)
def test_the_eps_of_the_jadore_norm(student, draw):
    small_tokens(jadore(student, draw), "fc", draw, "JadoreMHA")


@promise(
    "JadoreMHA",
    en="A mask [B, Lq, Lk] holds for its own sample and [Lq, Lk] for all, in all heads; 0 drops, in any dtype.",
    zh="掩码 [B, Lq, Lk] 只管各自的样本，[Lq, Lk] 管所有样本，对所有头有效；0 表示丢弃，dtype 任意。",
)
def test_masks_of_both_shapes(student, draw):
    mha = jadore(student, draw)
    mha.keeps(*inputs_for(draw, "JadoreMHA", batch=3), mask=draw.mask(3, 5, 7))
    mha.keeps(*inputs_for(draw, "JadoreMHA", lq=3, lk=3), mask=triangle(3).float())
    mha.keeps(*inputs_for(draw, "JadoreMHA"), mask=draw.mask(5, 7).long())
    mha.keeps(*inputs_for(draw, "JadoreMHA"), mask=draw.mask(2, 5, 7))


@promise(
    "JadoreMHA",
    en="A query that may look nowhere has weights 0 and keeps LayerNorm(q).",
    zh="哪里都不许看的查询，权重为 0，输出 LayerNorm(q)。",
)
def test_a_blind_query_is_only_normalised(student, draw):
    jadore(student, draw).keeps(*inputs_for(draw, "JadoreMHA"), mask=blinding(draw))


@promise("JadoreMHA", GRADIENTS_OF_ALL_LAYERS)
def test_gradients_of_the_jadore_sublayer(student, draw):
    cotangents = (draw(2, 5, 10), draw(2, 3, 5, 7))
    jadore(student, draw).differentiates(*inputs_for(draw, "JadoreMHA"), cotangents=cotangents, mask=blinding(draw))


@promise(
    "JadoreMHA",
    en="In training the dropout that was asked for acts on the weights, and after fc before the residual.",
    zh="训练时，所要求的 dropout 作用在权重上，以及 fc 之后、加残差之前。",
)
def test_the_dropout_that_was_asked_for(student, draw):
    Probe(student, draw, "JadoreMHA", training=True, dropout=0.4).keeps()


@promise(
    "JadoreMHA",
    en="In evaluation nothing is dropped; in training dropout=0.0 drops nothing, dropout=1.0 leaves LayerNorm(q), and the default is 0.1.",
    zh="评估时什么也不丢；训练时 dropout=0.0 什么都不丢，dropout=1.0 只剩 LayerNorm(q)，默认值是 0.1。",
)
def test_dropout_of_the_jadore_sublayer_can_be_off(student, draw):
    for dropout, training in ((0.0, True), (0.4, False), (1.0, True)):
        Probe(student, draw, "JadoreMHA", training=training, dropout=dropout).keeps()
    Probe(student, draw, "JadoreMHA", training=True).keeps()


@promise("JadoreMHA", FLOAT32_AND_BFLOAT16)
def test_the_jadore_sublayer_in_lower_precision(student, draw):
    for dtype in PRECISIONS:
        mha = jadore(student, draw, heads=2, width=9, d_k=5, d_v=3, dtype=dtype)
        mha.keeps(*sequences(draw, (9, 9, 9), batch=3, dtype=dtype), mask=draw.mask(3, 5, 7))


@promise("JadoreMHA", en="A dropout outside [0, 1] raises ValueError.", zh="dropout 不在 [0, 1] 内时抛出 ValueError。")
def test_what_the_jadore_sublayer_refuses(student, draw):
    jadore(student, draw).keeps(*inputs_for(draw, "JadoreMHA"))
    x = sequences(draw, (10, 10, 10), dtype=torch.float32)
    what = {"en": "a dropout outside [0, 1]", "zh": "dropout 不在 [0, 1] 内"}
    for p in (1.5, -0.5):
        require_refused(student, "JadoreMHA", 3, 10, 4, 6, dropout=p, inputs=x, train=True, **what)


@promise("JadoreMHA", INPUTS_STAY)
def test_the_jadore_sublayer_leaves_its_inputs_alone(student, draw):
    mask = draw.mask(2, 5, 7).double()
    jadore(student, draw).leaves_alone(*inputs_for(draw, "JadoreMHA"), mask=mask)


# PackedMHA


@promise(
    "PackedMHA",
    en="Equal widths: packed_proj holds the projections of q, k and v one below the other, and each input meets its own.",
    zh="宽度相同时：packed_proj 自上而下存着 q、k、v 的投影，三个输入各用各的一块。",
    weight=2,
)
def test_one_matrix_holds_three_projections(student, draw):
    mha = packed(student, draw)
    mha.settles(*inputs_for(draw, "PackedMHA"))
    mha.keeps(*inputs_for(draw, "PackedMHA", lk=5))
    mha.keeps(*inputs_for(draw, "PackedMHA"))


@promise(
    "PackedMHA",
    en="Different widths: q_proj, k_proj and v_proj; the output is as wide as the query.",
    zh="宽度不同时：用 q_proj、k_proj、v_proj；输出与查询同宽。",
)
def test_three_matrices_when_the_widths_differ(student, draw):
    packed(student, draw, SEPARATE).keeps(*sequences(draw, SEPARATE))
    widths = (10, 10, 14)
    packed(student, draw, widths).keeps(*sequences(draw, widths))


@promise("PackedMHA", NO_BIAS_ANYWHERE)
def test_packed_without_bias(student, draw):
    mha = packed(student, draw, bias=False)
    apart = packed(student, draw, SEPARATE, bias=False)
    for module, name in ((mha, "packed_proj"), (mha, "out_proj"), (apart, "k_proj"), (apart, "out_proj")):
        require(
            not module.has_bias(name, draw),
            f"PackedMHA: with bias=False, {name} still has a bias",
            f"PackedMHA：bias=False 时，{name} 仍然有偏置",
        )
    mha.keeps(*inputs_for(draw, "PackedMHA"))
    apart.keeps(*sequences(draw, SEPARATE))


@promise(
    "PackedMHA",
    en="attn_mask is obeyed: True = keep, as [Lq, Lk], [B, Lq, Lk], [B, 1, Lq, Lk] or [B, H, Lq, Lk].",
    zh="attn_mask 真的起作用：True = 保留，形状为 [Lq, Lk]、[B, Lq, Lk]、[B, 1, Lq, Lk] 或 [B, H, Lq, Lk]。",
    weight=2,
)
def test_the_mask_is_obeyed_in_four_shapes(student, draw):
    mha, inputs = packed(student, draw), inputs_for(draw, "PackedMHA")
    for shape in ((5, 7), (2, 1, 5, 7), (2, 3, 5, 7), (2, 5, 7)):
        mha.keeps(*inputs, attn_mask=draw.mask(*shape))


@promise(
    "PackedMHA",
    en="With as many samples or tokens as heads, a mask [B, Lq, Lk] still belongs to samples and [Lq, Lk] to all heads.",
    zh="样本数或词元数恰好等于头数时，掩码 [B, Lq, Lk] 仍然属于各样本，[Lq, Lk] 仍然属于所有头。",
)
def test_masks_fall_on_samples_and_not_on_heads(student, draw):
    mha = packed(student, draw)
    mha.keeps(*inputs_for(draw, "PackedMHA", batch=3), attn_mask=draw.mask(3, 5, 7))
    mha.keeps(*inputs_for(draw, "PackedMHA", lq=3, lk=3), attn_mask=triangle(3))


@promise(
    "PackedMHA",
    en="is_causal aligns to the lower right: the last query sees every key.",
    zh="is_causal 对齐到右下角：最后一个查询看得到所有键。",
)
def test_causal_aligns_to_the_lower_right(student, draw):
    mha = packed(student, draw)
    mha.keeps(*inputs_for(draw, "PackedMHA", lq=6, lk=6), is_causal=True)
    mha.keeps(*inputs_for(draw, "PackedMHA"), is_causal=True)
    mha.keeps(*inputs_for(draw, "PackedMHA", lq=7, lk=4), is_causal=True)


@promise(
    "PackedMHA",
    en="is_causal together with a mask: a key must be allowed by both.",
    zh="is_causal 与掩码同时给出时，两者都允许的键才看得到。",
)
def test_causal_and_a_mask_are_joined_by_and(student, draw):
    mha, inputs = packed(student, draw), inputs_for(draw, "PackedMHA")
    mha.keeps(*inputs, attn_mask=draw.mask(2, 3, 5, 7), is_causal=True)
    mha.keeps(*inputs, attn_mask=draw.mask(2, 5, 7), is_causal=True)


@promise("PackedMHA", BLIND_QUERY_GETS_THE_BIAS)
def test_a_blind_query_gives_the_bias(student, draw):
    packed(student, draw).keeps(*inputs_for(draw, "PackedMHA"), attn_mask=blinding(draw))


@promise(
    "PackedMHA",
    en="Gradients of the inputs and of all layers are right, packed or not, and finite for queries that may look nowhere.",
    zh="无论合并与否，输入和各层的梯度都正确；哪里都不许看的查询，梯度也是有限的。",
)
def test_gradients_of_the_packed_module(student, draw):
    mask = blinding(draw)
    packed(student, draw).differentiates(*inputs_for(draw, "PackedMHA"), cotangents=(draw(2, 5, 10),), attn_mask=mask)
    packed(student, draw, SEPARATE).differentiates(
        *sequences(draw, SEPARATE), cotangents=(draw(2, 5, 8),), attn_mask=mask
    )


@promise(
    "PackedMHA",
    en="In training a share `dropout` of the weights is dropped, and nothing else.",
    zh="训练时按 dropout 的比例丢弃权重，此外什么都不丢。",
)
def test_the_packed_module_drops_weights(student, draw):
    Probe(student, draw, "PackedMHA", training=True, dropout=0.4).keeps()


@promise(
    "PackedMHA",
    en="In evaluation nothing is dropped, however large dropout is. In training dropout=1.0 drops everything, and the default is 0.",
    zh="评估时什么也不丢，无论 dropout 多大。训练时 dropout=1.0 全部丢掉，默认值是 0。",
)
def test_the_packed_module_drops_nothing_in_evaluation(student, draw):
    for dropout, training in ((0.4, False), (1.0, True)):
        Probe(student, draw, "PackedMHA", training=training, dropout=dropout).keeps()
    Probe(student, draw, "PackedMHA", training=True).keeps()


@promise("PackedMHA", FLOAT32_AND_BFLOAT16)
def test_the_packed_module_in_lower_precision(student, draw):
    for dtype in PRECISIONS:
        mha = packed(student, draw, (8, 8, 8), total=10, heads=2, dtype=dtype)
        mha.keeps(*sequences(draw, (8, 8, 8), batch=3, dtype=dtype), attn_mask=draw.mask(3, 5, 7), is_causal=True)


@promise(
    "PackedMHA",
    en="Heads that do not divide E_total, and a dropout outside [0, 1], raise ValueError.",
    zh="头数不能整除 E_total，或 dropout 不在 [0, 1] 内，都抛出 ValueError。",
)
def test_what_the_packed_module_refuses(student, draw):
    name = "PackedMHA"
    packed(student, draw).keeps(*inputs_for(draw, name))
    x = sequences(draw, (12, 12, 12), dtype=torch.float32)
    what = {"en": "heads that do not divide E_total", "zh": "头数不能整除 E_total "}
    require_refused(student, name, 12, 12, 12, 10, 3, inputs=x, train=True, **what)
    what = {"en": "dropout = 1.5", "zh": "dropout = 1.5 "}
    require_refused(student, name, 12, 12, 12, 10, 2, dropout=1.5, inputs=x, train=True, **what)


@promise("PackedMHA", INPUTS_STAY)
def test_the_packed_module_leaves_its_inputs_alone(student, draw):
    mha = packed(student, draw)
    mha.leaves_alone(*inputs_for(draw, "PackedMHA"), attn_mask=draw.mask(2, 3, 5, 7), is_causal=True)


# torch_to_packed


def torch_state(draw, embed=12, key=None, value=None, bias=True, dtype=torch.float64):
    """The state dict of nn.MultiheadAttention(embed, …, kdim=key, vdim=value, bias=bias)."""
    state = {}
    if key is None:
        state["in_proj_weight"] = draw(3 * embed, embed, dtype=dtype)
    else:
        for name, width in (("q", embed), ("k", key), ("v", value)):
            state[f"{name}_proj_weight"] = draw(embed, width, dtype=dtype)
    if bias:
        state["in_proj_bias"] = draw(3 * embed, dtype=dtype)
    state["out_proj.weight"] = draw(embed, embed, dtype=dtype)
    if bias:
        state["out_proj.bias"] = draw(embed, dtype=dtype)
    return state


@promise(
    "torch_to_packed",
    en="Packed weights keep their order, q above k above v, and get the names of PackedMHA.",
    zh="合并的权重次序不变，q 在上、k 在中、v 在下，只换成 PackedMHA 的名字。",
)
def test_packed_weights_are_renamed(student, draw):
    matches(student, reference.torch_to_packed, torch_state(draw))


@promise(
    "torch_to_packed",
    en="Separate weights become q_proj, k_proj and v_proj, and the one packed bias is cut in three.",
    zh="分开的权重变成 q_proj、k_proj、v_proj，唯一的合并偏置切成三段。",
)
def test_separate_weights_and_the_packed_bias(student, draw):
    matches(student, reference.torch_to_packed, torch_state(draw, 12, 10, 14))
    matches(student, reference.torch_to_packed, torch_state(draw, 12, 12, 14))


@promise("torch_to_packed", en="Works without biases too.", zh="没有偏置时也正确。")
def test_states_without_biases(student, draw):
    matches(student, reference.torch_to_packed, torch_state(draw, 10, bias=False))
    matches(student, reference.torch_to_packed, torch_state(draw, 10, 8, 14, bias=False))


@promise(
    "torch_to_packed",
    en="bias_k and bias_v, which PackedMHA cannot hold, raise ValueError.",
    zh="PackedMHA 放不下 bias_k 和 bias_v，遇到它们就抛出 ValueError。",
)
def test_extra_key_and_value_biases_are_refused(student, draw):
    matches(student, reference.torch_to_packed, torch_state(draw))
    for sizes in ((12,), (12, 10, 14)):
        state = torch_state(draw, *sizes) | {"bias_k": draw(1, 1, 12), "bias_v": draw(1, 1, 12)}
        require(
            student.refuses("torch_to_packed", state),
            "torch_to_packed: a state with bias_k and bias_v must raise ValueError",
            "torch_to_packed：遇到 bias_k 和 bias_v 时应抛出 ValueError",
        )


@promise("torch_to_packed", DTYPE_STAYS)
def test_the_dtype_of_the_weights_stays(student, draw):
    for dtype in PRECISIONS:
        matches(student, reference.torch_to_packed, torch_state(draw, dtype=dtype))


@promise(
    "torch_to_packed",
    en="The state that was given stays as it was: nothing is taken out, renamed or overwritten.",
    zh="给出的 state 保持原样：不取走、不改名、不覆盖。",
)
def test_the_state_is_left_alone(student, draw):
    left_alone(student, reference.torch_to_packed, torch_state(draw, 12, 10, 14))
    left_alone(student, reference.torch_to_packed, torch_state(draw))


# varlen_attention


def rows(draw, total, heads=3, width=4, dtype=torch.float64):
    return tuple(draw(total, heads, width, dtype=dtype) for _ in range(3))


def offsets(*lengths, dtype=torch.int64):
    return torch.tensor([0, *lengths]).cumsum(0).to(dtype)


@promise(
    "varlen_attention",
    en="Every row attends, in every head, over the rows of its own sequence and over no others.",
    zh="每一行在每个头里只对本序列的各行做注意力，别的序列一行也看不到。",
    weight=2,
)
def test_sequences_never_see_each_other(student, draw):
    matches(student, reference.varlen_attention, *rows(draw, 13), offsets(5, 2, 6))
    matches(student, reference.varlen_attention, *rows(draw, 11), offsets(1, 7, 2, 1))


@promise(
    "varlen_attention",
    en="One sequence alone is ordinary attention; sequences of one row return their values.",
    zh="只有一个序列时就是普通的注意力；只有一行的序列返回它的值。",
)
def test_one_sequence_and_sequences_of_one_row(student, draw):
    matches(student, reference.varlen_attention, *rows(draw, 6), offsets(6))
    matches(student, reference.varlen_attention, *rows(draw, 5), offsets(1, 1, 1, 1, 1))


@promise(
    "varlen_attention",
    en="Empty sequences, at the front, in between or at the end, change nothing.",
    zh="空序列无论在开头、中间还是末尾，都不影响结果。",
)
def test_empty_sequences_are_allowed(student, draw):
    matches(student, reference.varlen_attention, *rows(draw, 9), offsets(0, 5, 0, 0, 4, 0))


@promise("varlen_attention", en="The offsets may be int32 or int64.", zh="offsets 可以是 int32 或 int64。")
def test_both_kinds_of_offsets(student, draw):
    given = rows(draw, 9)
    matches(student, reference.varlen_attention, *given, offsets(2, 7, dtype=torch.int32))
    matches(student, reference.varlen_attention, *given, offsets(2, 7))


@promise(
    "varlen_attention",
    en="However large the keys of a neighbouring sequence are, they have no effect.",
    zh="相邻序列的键再大，也没有影响。",
)
def test_huge_neighbours_are_not_seen(student, draw):
    q, k, v = rows(draw, 11)
    k[4:8] *= 1000
    v[4:8] *= 1000
    matches(student, reference.varlen_attention, q[:, :2], k[:, :2], v[:, :2], offsets(4, 4, 3))


@promise(
    "varlen_attention",
    en="Gradients are right, with empty sequences too.",
    zh="梯度正确，有空序列时也一样。",
)
def test_gradients_of_the_rows(student, draw):
    given, cotangent = rows(draw, 9), draw(9, 3, 4)
    for cut in (offsets(5, 4), offsets(2, 0, 7)):
        gradients_match(student, reference.varlen_attention, *given, cut, wrt=(0, 1, 2), cotangents=(cotangent,))


@promise("varlen_attention", FLOAT32_AND_BFLOAT16)
def test_rows_in_lower_precision(student, draw):
    for dtype in PRECISIONS:
        matches(student, reference.varlen_attention, *rows(draw, 10, 2, 5, dtype=dtype), offsets(3, 7))


@promise("varlen_attention", INPUTS_STAY)
def test_the_rows_are_left_alone(student, draw):
    left_alone(student, reference.varlen_attention, *rows(draw, 9), offsets(4, 5))
