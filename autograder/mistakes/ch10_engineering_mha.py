"""Chapter 10: contracts misread. Residuals, norms, masks, dropout, packed matrices and offsets gone wrong."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from autograder.reference import ch10_engineering_mha as right

from . import mistake


class _Steps:
    """A right post-norm sub-layer taken apart, so that a mistake can replace one step."""

    def forward(self, q, k, v, mask=None):
        w_q, w_k, w_v, _ = self.layers()
        heads = (right.split(layer(x), self.heads) for layer, x in ((w_q, q), (w_k, k), (w_v, v)))
        mixed, weights = self.attend(*heads, self.allowed(mask))
        return self.finish(right.merge(mixed), q, k), weights

    def allowed(self, mask):
        return right.for_all_heads(mask)

    def attend(self, q, k, v, mask):
        return right.attend(q, k, v, mask, self.dropout)

    def finish(self, merged, q, k):
        return self.layer_norm(q + self.dropout(self.layers()[-1](merged)))


class _Restless(nn.Dropout):
    def forward(self, x):
        return F.dropout(x, self.p)


class _Post(_Steps, right.MultiHeadAttention):
    def layers(self):
        return self.W_Q, self.W_K, self.W_V, self.W_O


class _Jadore(_Steps, right.JadoreMHA):
    def layers(self):
        return self.w_qs, self.w_ks, self.w_vs, self.fc


def _dropped_weights(q, k, v, mask, dropout):
    weights = dropout(right.attend(q, k, v, mask)[1])
    return weights @ v, weights


def _filled(q, k, v, mask, dropout, fill):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores if mask is None else scores.masked_fill(~mask, fill), -1)
    return dropout(weights) @ v, weights


# MultiHeadAttention


@mistake(
    "MultiHeadAttention",
    en="The norm comes before the sum: Q + LayerNorm(W_O heads). Add first, then normalise.",
    zh="先归一化，后相加：Q + LayerNorm(W_O 各头)。应当先加残差，再归一化。",
)
class NormalisesBeforeAdding(_Post):
    def finish(self, merged, q, k):
        return q + self.layer_norm(self.dropout(self.W_O(merged)))


@mistake(
    "MultiHeadAttention",
    en="This is pre-norm: the query was normalised on the way in and the sum is not. The contract here is post-norm.",
    zh="这是 pre-norm：查询在入口处就归一化了，和却没有归一化。这里约定的是 post-norm。",
)
class NormalisesOnTheWayIn(_Post):
    def forward(self, q, k, v, mask=None):
        self.residual = q
        return super().forward(self.layer_norm(q), k, v, mask)

    def finish(self, merged, q, k):
        return self.residual + self.dropout(self.W_O(merged))


@mistake(
    "MultiHeadAttention",
    en="The residual is missing: the output is LayerNorm(W_O heads). Add Q before the norm.",
    zh="漏了残差：输出成了 LayerNorm(W_O 各头)。归一化之前要加上 Q。",
)
class ForgetsTheResidual(_Post):
    def finish(self, merged, q, k):
        return self.layer_norm(self.dropout(self.W_O(merged)))


@mistake(
    "MultiHeadAttention",
    en="The norm is missing: the output is Q + W_O heads.",
    zh="漏了层归一化：输出成了 Q + W_O 各头。",
)
class ForgetsTheNorm(_Post):
    def finish(self, merged, q, k):
        return q + self.dropout(self.W_O(merged))


@mistake(
    "MultiHeadAttention",
    en="The residual is K. It must be Q, the sequence that asks; in self-attention the two are the same.",
    zh="残差加的是 K。应当加发问的序列 Q；自注意力时看不出差别。",
)
class AddsTheKeys(_Post):
    def finish(self, merged, q, k):
        return self.layer_norm(k + self.dropout(self.W_O(merged)))


@mistake(
    "MultiHeadAttention",
    en="The residual is the projected query: Q was overwritten by W_Q(Q). Keep the input before you project.",
    zh="残差加的是投影后的查询：Q 被 W_Q(Q) 覆盖了。投影之前先把输入留下来。",
)
class AddsTheProjectedQuery(_Post):
    def finish(self, merged, q, k):
        return super().finish(merged, self.W_Q(q), k)


@mistake(
    "MultiHeadAttention",
    en="The eps of the norm is 1e-6, the other design's. Here it is 1e-5, PyTorch's default.",
    zh="层归一化的 eps 用成了 1e-6，那是另一个设计的。这里是 1e-5，也就是 PyTorch 的默认值。",
)
class NormalisesWithTheOtherEps(_Post):
    def __init__(self, d_model=512, n_heads=8, dropout=0.1):
        super().__init__(d_model, n_heads, dropout)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)


@mistake(
    "MultiHeadAttention",
    en="The mask is inverted: here 0 means drop.",
    zh="掩码反了：这里 0 表示丢弃。",
)
class KeepsWhereTheMaskIsZero(_Post):
    def allowed(self, mask):
        return None if mask is None else ~super().allowed(mask)


@mistake(
    "MultiHeadAttention",
    en="A mask [B, Lq, Lk] was used as it came, so B lined up with the heads. Give it a head axis: mask[:, None].",
    zh="掩码 [B, Lq, Lk] 原样拿来用，B 就和头对齐了。要给它加上头的轴：mask[:, None]。",
)
class MasksHeadsInsteadOfSamples(_Post):
    def allowed(self, mask):
        return None if mask is None else mask != 0


@mistake(
    "MultiHeadAttention",
    en="mask.unsqueeze(1) was applied to a mask [Lq, Lk] too: with as many tokens as heads, each head got one row. Only a 3-D mask needs it.",
    zh="对 [Lq, Lk] 的掩码也做了 mask.unsqueeze(1)：词元数等于头数时，每个头只拿到其中一行。只有三维掩码才需要它。",
)
class GivesEachHeadARowOfTheMask(_Post):
    def allowed(self, mask):
        return None if mask is None else mask.unsqueeze(1) != 0


@mistake(
    "MultiHeadAttention",
    en="The mask works only as bool. It may have any dtype: compare it with 0.",
    zh="掩码只有是布尔型时才能用。它可以是任意 dtype：请与 0 比较。",
)
class TakesOnlyBoolMasks(_Post):
    def allowed(self, mask):
        if mask is not None and mask.dtype != torch.bool:
            raise RuntimeError("masked_fill_ only supports boolean masks")
        return super().allowed(mask)


@mistake(
    "MultiHeadAttention",
    en="A query that may look nowhere averages all values: −1e9 everywhere is the same as 0 everywhere. Its weights must be 0.",
    zh="哪里都不许看的查询，把所有值平均了：整行都是 −1e9 等于整行都是 0。它的权重应为 0。",
)
class AveragesWhatIsForbidden(_Post):
    def attend(self, q, k, v, mask):
        return _filled(q, k, v, mask, self.dropout, -1e9)


@mistake(
    "MultiHeadAttention",
    en="A query that may look nowhere gives NaN: the softmax of a row of −inf is 0/0. Its weights must be 0.",
    zh="哪里都不许看的查询得到 NaN：整行 −inf 的 softmax 是 0/0。它的权重应为 0。",
)
class GivesNanWhereNothingIsAllowed(_Post):
    def attend(self, q, k, v, mask):
        return _filled(q, k, v, mask, self.dropout, -torch.inf)


@mistake(
    "MultiHeadAttention",
    en="The weights are returned after dropout: in training their rows do not sum to 1. Return them as they were before.",
    zh="返回的是 dropout 之后的权重：训练时各行之和不是 1。应返回 dropout 之前的。",
)
class ReturnsDroppedWeights(_Post):
    def attend(self, q, k, v, mask):
        return _dropped_weights(q, k, v, mask, self.dropout)


@mistake(
    "MultiHeadAttention",
    en="Dropout acts in evaluation too. Use nn.Dropout, or pass self.training.",
    zh="评估时 dropout 仍在起作用。请用 nn.Dropout，或传入 self.training。",
)
class DropsInEvaluation(_Post):
    def __init__(self, d_model=512, n_heads=8, dropout=0.1):
        super().__init__(d_model, n_heads, dropout)
        self.dropout = _Restless(dropout)


@mistake(
    "MultiHeadAttention",
    en="There is no dropout on the weights, only after W_O. Both are needed.",
    zh="权重上没有 dropout，只有 W_O 之后有。两处都要。",
)
class DropsNoWeights(_Post):
    def attend(self, q, k, v, mask):
        return right.attend(q, k, v, mask)


@mistake(
    "MultiHeadAttention",
    en="There is no dropout after W_O, only on the weights. Both are needed.",
    zh="W_O 之后没有 dropout，只有权重上有。两处都要。",
)
class DropsNoOutputs(_Post):
    def finish(self, merged, q, k):
        return self.layer_norm(q + self.W_O(merged))


@mistake(
    "MultiHeadAttention",
    en="Dropout comes after the residual, so the input itself is dropped. Drop W_O's output, then add Q.",
    zh="dropout 放在了残差之后，于是输入本身也被丢弃。应先对 W_O 的输出做 dropout，再加 Q。",
)
class DropsTheResidual(_Post):
    def finish(self, merged, q, k):
        return self.layer_norm(self.dropout(q + self.W_O(merged)))


@mistake(
    "MultiHeadAttention",
    en="`assert` raises AssertionError, and vanishes under `python -O`. Write `raise ValueError(...)`.",
    zh="`assert` 抛出的是 AssertionError，而且在 `python -O` 下会消失。请写 `raise ValueError(...)`。",
)
class AssertsThatTheHeadsDivide(_Post):
    def __init__(self, d_model=512, n_heads=8, dropout=0.1):
        assert d_model % n_heads == 0
        super().__init__(d_model, n_heads, dropout)


# JadoreMHA


@mistake(
    "JadoreMHA",
    en="The dropout on the weights stays at 0.1 whatever is asked: the argument never reaches it.",
    zh="权重上的 dropout 始终是 0.1，与要求的无关：参数没有传到那里。",
)
class IgnoresTheDropoutItWasAskedFor(_Jadore):
    def attend(self, q, k, v, mask):
        return right.attend(q, k, v, mask, lambda w: F.dropout(w, 0.1, self.training))


@mistake(
    "JadoreMHA",
    en="The linear layers have biases. In this design they have none: bias=False.",
    zh="线性层带有偏置。这个设计里没有：bias=False。",
)
class HasBiases(_Jadore):
    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__(n_head, d_model, d_k, d_v, dropout)
        for name, layer in list(self.named_children()):
            if isinstance(layer, nn.Linear):
                setattr(self, name, nn.Linear(layer.in_features, layer.out_features))
                nn.init.zeros_(getattr(self, name).bias)


@mistake(
    "JadoreMHA",
    en="The eps of the norm is PyTorch's default, 1e-5. This design has 1e-6.",
    zh="层归一化的 eps 用了 PyTorch 的默认值 1e-5。这个设计是 1e-6。",
)
class NormalisesWithTheDefaultEps(_Jadore):
    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__(n_head, d_model, d_k, d_v, dropout)
        self.layer_norm = nn.LayerNorm(d_model)


@mistake(
    "JadoreMHA",
    en="The scores are divided by √d_v. Queries and keys are d_k wide.",
    zh="分数除以了 √d_v。查询和键的宽度是 d_k。",
)
class ScalesByTheValues(_Jadore):
    def attend(self, q, k, v, mask):
        return super().attend(q * (q.shape[-1] / v.shape[-1]) ** 0.5, k, v, mask)


@mistake(
    "JadoreMHA",
    en="A mask [B, Lq, Lk] was used as it came, so B lined up with the heads. Give it a head axis: mask.unsqueeze(1).",
    zh="掩码 [B, Lq, Lk] 原样拿来用，B 就和头对齐了。要给它加上头的轴：mask.unsqueeze(1)。",
)
class LinesSamplesUpWithHeads(_Jadore):
    def allowed(self, mask):
        return None if mask is None else mask != 0


@mistake(
    "JadoreMHA",
    en="mask.unsqueeze(1) was applied to a mask [Lq, Lk] too: with as many tokens as heads, each head got one row. Only a 3-D mask needs it.",
    zh="对 [Lq, Lk] 的掩码也做了 mask.unsqueeze(1)：词元数等于头数时，每个头只拿到其中一行。只有三维掩码才需要它。",
)
class AlwaysUnsqueezesTheMask(_Jadore):
    def allowed(self, mask):
        return None if mask is None else mask.unsqueeze(1) != 0


@mistake(
    "JadoreMHA",
    en="attn is returned after dropout: in training its rows do not sum to 1. Return it as it was before.",
    zh="返回的 attn 是 dropout 之后的：训练时各行之和不是 1。应返回 dropout 之前的。",
)
class ReturnsDroppedAttention(_Jadore):
    def attend(self, q, k, v, mask):
        return _dropped_weights(q, k, v, mask, self.dropout)


# PackedMHA


class _Packed(right.PackedMHA):
    """The right module taken apart, so that a mistake can replace one step."""

    def forward(self, query, key, value, attn_mask=None, is_causal=False):
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        mask = self.allowed(attn_mask, is_causal, q.shape[2], k.shape[2])
        return self.out_proj(right.merge(self.attend(q, k, v, mask)))

    def split(self, x):
        return right.split(x, self.heads)

    def allowed(self, attn_mask, is_causal, q_len, k_len):
        return right.allowed(attn_mask, is_causal, q_len, k_len)

    def attend(self, q, k, v, mask):
        return right.attend(q, k, v, mask, self.dropout)[0]

    def pieces(self):
        layer = self.packed_proj
        return layer.weight.chunk(3), (None,) * 3 if layer.bias is None else layer.bias.chunk(3)


@mistake(
    "PackedMHA",
    en="The packed matrix was unpacked as k, q, v. The order is q, k, v.",
    zh="把合并的矩阵按 k、q、v 拆开了。次序应为 q、k、v。",
)
class UnpacksKeysFirst(_Packed):
    def project(self, query, key, value):
        if not self.packed:
            return super().project(query, key, value)
        k, q, v = map(F.linear, (key, query, value), *self.pieces())
        return q, k, v


@mistake(
    "PackedMHA",
    en="The packed weight was cut along its columns (dim=1). Rows are outputs: cut along dim=0.",
    zh="合并的权重沿列切开了（dim=1）。行才是输出：要沿 dim=0 切。",
)
class CutsTheColumns(_Packed):
    def project(self, query, key, value):
        if not self.packed:
            return super().project(query, key, value)
        weights = self.packed_proj.weight.tensor_split(3, dim=1)
        return map(F.linear, (query, key, value), weights, self.pieces()[1])


@mistake(
    "PackedMHA",
    en="The packed matrix was cut by heads first, q, k, v inside each head. Cut it in three first, then into heads.",
    zh="合并的矩阵先按头切，每个头里再分 q、k、v。应先切成三份，再拆头。",
)
class PacksInsideEachHead(_Packed):
    def project(self, query, key, value):
        if not self.packed:
            return super().project(query, key, value)
        results = [self.packed_proj(x).unflatten(-1, (self.heads, 3, -1)) for x in (query, key, value)]
        return [x[..., i, :].flatten(-2) for i, x in enumerate(results)]


@mistake(
    "PackedMHA",
    en="The bias was forgotten when the packed weight was cut: F.linear(x, weight) without it.",
    zh="拆开合并的权重时忘了偏置：F.linear(x, weight) 里没有它。",
)
class ForgetsTheBiasWhenUnpacking(_Packed):
    def project(self, query, key, value):
        if not self.packed:
            return super().project(query, key, value)
        return map(F.linear, (query, key, value), self.pieces()[0])


@mistake(
    "PackedMHA",
    en="packed_proj(query) was cut in three, so key and value are never read. That holds for self-attention only.",
    zh="把 packed_proj(query) 切成了三份，key 和 value 根本没有读。这只适用于自注意力。",
)
class ProjectsOnlyTheQuery(_Packed):
    def project(self, query, key, value):
        return super().project(query, query, query) if self.packed else super().project(query, key, value)


@mistake(
    "PackedMHA",
    en="attn_mask is accepted and never used.",
    zh="接受了 attn_mask，却从没使用。",
)
class NeverUsesTheMask(_Packed):
    def allowed(self, attn_mask, is_causal, q_len, k_len):
        return super().allowed(None, is_causal, q_len, k_len)


@mistake(
    "PackedMHA",
    en="attn_mask is inverted: here True means keep. (nn.MultiheadAttention has it the other way round.)",
    zh="attn_mask 反了：这里 True 表示保留。（nn.MultiheadAttention 恰好相反。）",
)
class DropsWhereTheMaskIsTrue(_Packed):
    def allowed(self, attn_mask, is_causal, q_len, k_len):
        return super().allowed(None if attn_mask is None else ~attn_mask, is_causal, q_len, k_len)


@mistake(
    "PackedMHA",
    en="A mask [B, Lq, Lk] was passed on as it came, so B lined up with the heads. It needs an axis: attn_mask[:, None].",
    zh="掩码 [B, Lq, Lk] 原样传了下去，B 就和头对齐了。要加一个轴：attn_mask[:, None]。",
)
class PassesTheMaskOnAsItCame(_Packed):
    def allowed(self, attn_mask, is_causal, q_len, k_len):
        past = super().allowed(None, is_causal, q_len, k_len)
        return past if attn_mask is None else attn_mask if past is None else attn_mask & past


@mistake(
    "PackedMHA",
    en="is_causal is aligned to the upper left: with more keys than queries, the last query misses the last keys. Shift by Lk − Lq.",
    zh="is_causal 对齐到了左上角：键比查询多时，最后一个查询看不到最后几个键。应平移 Lk − Lq。",
)
class AlignsToTheUpperLeft(_Packed):
    def allowed(self, attn_mask, is_causal, q_len, k_len):
        mask = right.for_all_heads(attn_mask)
        past = torch.ones(q_len, k_len, dtype=torch.bool).tril()
        return mask if not is_causal else past if mask is None else mask & past


@mistake(
    "PackedMHA",
    en="With is_causal the mask is forgotten. A key must be allowed by both.",
    zh="is_causal 为真时忘了掩码。两者都允许的键才能看。",
)
class UsesOneMaskOfTwo(_Packed):
    def allowed(self, attn_mask, is_causal, q_len, k_len):
        return super().allowed(None if is_causal else attn_mask, is_causal, q_len, k_len)


@mistake(
    "PackedMHA",
    en="A query that may look nowhere gives NaN: the softmax of a row of −inf is 0/0. Its head outputs must be 0.",
    zh="哪里都不许看的查询得到 NaN：整行 −inf 的 softmax 是 0/0。它的各头输出应为 0。",
)
class LeavesNanInBlindQueries(_Packed):
    def attend(self, q, k, v, mask):
        return _filled(q, k, v, mask, self.dropout, -torch.inf)[0]


@mistake(
    "PackedMHA",
    en="The weights are dropped in evaluation too: dropout_p=self.dropout always acts. Only drop while self.training.",
    zh="评估时仍在丢弃权重：dropout_p=self.dropout 总是起作用。只有 self.training 时才丢。",
)
class DropsWeightsInEvaluation(_Packed):
    def attend(self, q, k, v, mask):
        return right.attend(q, k, v, mask, lambda w: F.dropout(w, self.dropout.p))[0]


@mistake(
    "PackedMHA",
    en="With bias=False, out_proj still has a bias. `bias` holds for all layers.",
    zh="bias=False 时，out_proj 仍然有偏置。`bias` 管所有层。",
)
class KeepsTheOutputBias(_Packed):
    def __init__(self, E_q, E_k, E_v, E_total, nheads, dropout=0.0, bias=True):
        super().__init__(E_q, E_k, E_v, E_total, nheads, dropout, bias)
        if not bias:
            self.out_proj = nn.Linear(E_total, E_q)
            nn.init.zeros_(self.out_proj.bias)


# torch_to_packed


@mistake(
    "torch_to_packed",
    en="The input biases are lost.",
    zh="输入投影的偏置丢了。",
)
def loses_the_biases(state):
    packed = right.torch_to_packed(state)
    return {name: x for name, x in packed.items() if "bias" not in name or "out" in name}


@mistake(
    "torch_to_packed",
    en="A state without biases fails: in_proj_bias is not always there.",
    zh="没有偏置的 state 会出错：in_proj_bias 不一定存在。",
)
def demands_a_bias(state):
    state["in_proj_bias"]  # KeyError where there is none
    return right.torch_to_packed(state)


@mistake(
    "torch_to_packed",
    en="Separate weights fail: with kdim or vdim there is no in_proj_weight, but q_proj_weight, k_proj_weight and v_proj_weight.",
    zh="权重分开存放时会出错：有 kdim 或 vdim 时没有 in_proj_weight，而是 q_proj_weight、k_proj_weight、v_proj_weight。",
)
def knows_only_packed_weights(state):
    state["in_proj_weight"]  # KeyError where the weights are separate
    return right.torch_to_packed(state)


@mistake(
    "torch_to_packed",
    en="bias_k and bias_v are dropped silently: the converted module computes something else. Raise ValueError.",
    zh="bias_k 和 bias_v 被悄悄丢掉了：转换后的模块算的是另一回事。请抛出 ValueError。",
)
def drops_what_does_not_fit(state):
    return right.torch_to_packed({name: x for name, x in state.items() if name not in ("bias_k", "bias_v")})


@mistake(
    "torch_to_packed",
    en="The state was emptied with pop: the caller's dict is now empty. Read from it, write to a new one.",
    zh="用 pop 掏空了 state：调用者的字典变空了。只读它，写到新的字典里。",
)
def empties_the_state(state):
    packed = right.torch_to_packed(state)
    state.clear()
    return packed


# varlen_attention


@mistake(
    "varlen_attention",
    en="The offsets are ignored: all rows attend to each other, across sequences.",
    zh="没有使用 offsets：所有行互相看，跨越了序列。",
)
def lets_sequences_see_each_other(q, k, v, offsets):
    return right.attend(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1))[0].transpose(0, 1)


@mistake(
    "varlen_attention",
    en="The rows were not brought to [H, L, D], so each row attends over its own heads. Exchange the first two axes.",
    zh="没有把各行变成 [H, L, D]，于是每一行都在自己的各头之间做注意力。请交换前两个轴。",
)
def attends_over_the_heads(q, k, v, offsets):
    return right.attend(q, k, v)[0]


@mistake(
    "varlen_attention",
    en="Rows were numbered with the wrong side of bucketize or searchsorted: the first row of each sequence joined the one before. Use right=True.",
    zh="用 bucketize 或 searchsorted 给行编号时取错了边：每个序列的第一行并入了前一个序列。应当用 right=True。",
)
def is_off_by_one_at_the_borders(q, k, v, offsets):
    number = torch.bucketize(torch.arange(len(q), device=q.device), offsets)
    mask = number[:, None] == number
    return right.attend(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), mask)[0].transpose(0, 1)


@mistake(
    "varlen_attention",
    en="The scores are not divided by √D.",
    zh="分数没有除以 √D。",
)
def forgets_the_scale(q, k, v, offsets):
    return right.varlen_attention(q * q.shape[-1] ** 0.5, k, v, offsets)


@mistake(
    "varlen_attention",
    en="An empty sequence fails: the maximum of no scores does not exist. Skip it, or let softmax do the work.",
    zh="空序列会出错：没有分数就没有最大值。跳过它，或者交给 softmax。",
)
def takes_the_maximum_of_nothing(q, k, v, offsets):
    for begin, end in pairwise(offsets.tolist()):  # amax raises an error for an empty sequence
        (q[begin:end].transpose(0, 1) @ k[begin:end].permute(1, 2, 0)).amax(-1)
    return right.varlen_attention(q, k, v, offsets)


@mistake(
    "varlen_attention",
    en="int32 offsets fail: tensor_split takes int64 only. Convert them, with .long() or .tolist().",
    zh="int32 的 offsets 会出错：tensor_split 只接受 int64。用 .long() 或 .tolist() 转换。",
)
def takes_only_long_offsets(q, k, v, offsets):
    q.tensor_split(offsets[1:-1].cpu())  # raises an error for int32
    return right.varlen_attention(q, k, v, offsets)
