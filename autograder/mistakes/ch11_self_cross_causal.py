"""Chapter 11: the wrong sequence asked, the wrong mask handed on, the wrong thing added."""

import torch
from torch import nn
from torch.nn import functional as F

from autograder.reference import ch11_self_cross_causal as right

from . import mistake

# CrossAttention


def _scores(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


def _filled(scores, mask, number=-torch.inf):
    return scores if mask is None else scores.masked_fill(~mask, number)


@mistake(
    "CrossAttention",
    en="The roles are exchanged: the memory asks and x answers. Queries come from x, keys and values from the memory.",
    zh="角色反了：memory 在发问，x 在回答。查询应来自 x，键和值来自 memory。",
)
class AsksFromTheMemory(right.CrossAttention):
    def forward(self, x, memory, mask=None):
        return super().forward(memory, x, mask)


@mistake(
    "CrossAttention",
    en="Keys and values are made from x: the memory is never looked at, and this is self-attention.",
    zh="键和值是从 x 算出来的：memory 根本没有用到，这是自注意力。",
)
class NeverLooksAtTheMemory(right.CrossAttention):
    def forward(self, x, memory, mask=None):
        return super().forward(x, x, mask)


@mistake(
    "CrossAttention",
    en="The keys come from the memory, but the values from x. Both belong to the memory.",
    zh="键来自 memory，值却来自 x。两者都应来自 memory。",
)
class TakesTheValuesFromX(right.CrossAttention):
    def forward(self, x, memory, mask=None):
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(memory)), self.split(self.v_proj(x))
        return self.out_proj(self.merge(self.attend(q, k, v, mask)))


@mistake(
    "CrossAttention",
    en="A pair comes back, output and weights. Return the output alone: code that computes x + attn(…) expects a tensor.",
    zh="返回了一对值：输出和权重。应只返回输出：写 x + attn(…) 时需要的是一个张量。",
)
class ReturnsAPair(right.CrossAttention):
    def forward(self, x, memory, mask=None):
        q, k = self.split(self.q_proj(x)), self.split(self.k_proj(memory))
        return super().forward(x, memory, mask), torch.softmax(_filled(_scores(q, k), mask), -1).nan_to_num(0.0)


@mistake(
    "CrossAttention",
    en="x is added inside the attention. Here the residual connection belongs to the block.",
    zh="在注意力内部就加上了 x。这里残差连接属于块，不属于注意力。",
)
class AddsTheResidualInside(right.CrossAttention):
    def forward(self, x, memory, mask=None):
        return x + super().forward(x, memory, mask)


@mistake(
    "CrossAttention",
    en="out_proj is never used: the heads are joined, but not mixed.",
    zh="没有用到 out_proj：各头只是拼接，没有混合。",
)
class SkipsTheOutputLayer(right.CrossAttention):
    def forward(self, x, memory, mask=None):
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(memory)), self.split(self.v_proj(memory))
        return self.merge(self.attend(q, k, v, mask))


@mistake(
    "CrossAttention",
    en="The layers have no bias. All four are plain nn.Linear(d_model, d_model), with bias.",
    zh="各层没有偏置。四层都应是普通的 nn.Linear(d_model, d_model)，带偏置。",
)
class HasNoBiases(right.CrossAttention):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))


@mistake(
    "CrossAttention",
    en="One view straight to [B, H, L, d] cuts through tokens. View to [B, L, H, d], then exchange axes 1 and 2.",
    zh="直接 view 成 [B, H, L, d]，把词元切断了。应先 view 成 [B, L, H, d]，再交换第 1、2 轴。",
)
class ViewsStraightIntoHeads(right.CrossAttention):
    def split(self, x):
        return x.reshape(x.shape[0], self.n_heads, x.shape[1], -1)


@mistake("CrossAttention", en="The scores are not divided by √d_k.", zh="分数没有除以 √d_k。")
class ForgetsTheScale(right.CrossAttention):
    def attend(self, q, k, v, mask):
        return super().attend(q * q.shape[-1] ** 0.5, k, v, mask)


@mistake(
    "CrossAttention",
    en="The scores are divided by √d_model. A head's dot product has d_k = d_model / n_heads terms: divide by √d_k.",
    zh="分数除以了 √d_model。一个头的点积只有 d_k = d_model / n_heads 项：应除以 √d_k。",
)
class ScalesByTheWholeWidth(right.CrossAttention):
    def attend(self, q, k, v, mask):
        return super().attend(q / self.n_heads**0.5, k, v, mask)


@mistake(
    "CrossAttention",
    en="The mask is inverted: here True means may look. (nn.MultiheadAttention has it the other way round.)",
    zh="掩码反了：这里 True 表示可以看。（nn.MultiheadAttention 恰好相反。）",
)
class DropsWhereTheMaskIsTrue(right.CrossAttention):
    def attend(self, q, k, v, mask):
        return super().attend(q, k, v, None if mask is None else ~mask)


@mistake(
    "CrossAttention",
    en="The mask is ignored: every query sees every key.",
    zh="没有使用掩码：每个查询都看到了所有键。",
)
class IgnoresTheMask(right.CrossAttention):
    def attend(self, q, k, v, mask):
        return super().attend(q, k, v, None)


@mistake(
    "CrossAttention",
    en="The mask is added to the scores as 0 and 1: what it allows gains a bonus of 1, and what it forbids is still seen.",
    zh="把掩码当作 0 和 1 加到了分数上：允许的键加了 1，禁止的键照样看得见。",
)
class AddsTheMaskAsNumbers(right.CrossAttention):
    def attend(self, q, k, v, mask):
        scores = _scores(q, k) if mask is None else _scores(q, k) + mask.to(q.dtype)
        return torch.softmax(scores, -1) @ v


@mistake(
    "CrossAttention",
    en="The mask gets an extra axis, mask[:, None], as if it were always [B, Lq, Lk]. It broadcasts to [B, H, Lq, Lk] as it is.",
    zh="给掩码多加了一个轴（mask[:, None]），好像它总是 [B, Lq, Lk]。它原样就能广播到 [B, H, Lq, Lk]。",
)
class GivesTheMaskAnotherAxis(right.CrossAttention):
    def attend(self, q, k, v, mask):
        return super().attend(q, k, v, mask if mask is None or mask.dim() > 3 else mask.unsqueeze(1))


@mistake(
    "CrossAttention",
    en="Weights are set to 0 after the softmax: the row no longer sums to 1. Mask the scores before the softmax.",
    zh="在 softmax 之后才把权重置 0：这一行的和不再是 1。应在 softmax 之前遮住分数。",
)
class MasksAfterTheSoftmax(right.CrossAttention):
    def attend(self, q, k, v, mask):
        return (torch.softmax(_scores(q, k), -1) * (1 if mask is None else mask)) @ v


@mistake(
    "CrossAttention",
    en="A query that may look nowhere averages what is forbidden: −1e9 everywhere is the same as 0 everywhere. Its heads must give 0.",
    zh="哪里都不许看的查询，把禁止的内容平均了：整行都是 −1e9 等于整行都是 0。它的各头应输出 0。",
)
class AveragesWhatIsForbidden(right.CrossAttention):
    def attend(self, q, k, v, mask):
        return torch.softmax(_filled(_scores(q, k), mask, -1e9), -1) @ v


@mistake(
    "CrossAttention",
    en="A query that may look nowhere gives NaN: the softmax of a row of −inf is 0/0. Its heads must give 0.",
    zh="哪里都不许看的查询得到 NaN：整行 −inf 的 softmax 是 0/0。它的各头应输出 0。",
)
class GivesNanWhereNothingIsAllowed(right.CrossAttention):
    def attend(self, q, k, v, mask):
        return torch.softmax(_filled(_scores(q, k), mask), -1) @ v


@mistake(
    "CrossAttention",
    en="NaN is cleaned away only after out_proj, so a query that may look nowhere loses its bias. Clean the weights, before they meet the values.",
    zh="到 out_proj 之后才清除 NaN，于是哪里都不许看的查询丢掉了它的偏置。应在权重乘以值之前清理。",
)
class CleansUpAfterTheOutputLayer(GivesNanWhereNothingIsAllowed):
    def forward(self, x, memory, mask=None):
        return super().forward(x, memory, mask).nan_to_num(0.0)


@mistake(
    "CrossAttention",
    en="There is no check that the heads divide the width; `assert` or an error from inside torch is not enough. Raise ValueError.",
    zh="没有检查头数能否整除宽度；`assert` 或 torch 内部的错误都不算。请抛出 ValueError。",
)
class AssertsThatTheHeadsDivide(right.CrossAttention):
    def __init__(self, d_model, n_heads):
        assert d_model % n_heads == 0
        super().__init__(d_model, n_heads)


# EncoderBlock


class _Encoder(right.EncoderBlock):
    """The right block taken apart, so that a mistake can replace one step."""

    def forward(self, x, mask=None):
        return self.think(self.look(x, mask))

    def look(self, x, mask):
        h = self.norm1(x)
        return x + self.attn(h, h, mask)

    def think(self, x):
        return x + self.ffn(self.norm2(x))


@mistake(
    "EncoderBlock",
    en="This is post-LN: norm(x + step(x)). It should be pre-LN, x + step(norm(x)): normalise a copy, leave the residual raw.",
    zh="这是 post-LN：norm(x + step(x))。要的是 pre-LN：x + step(norm(x))，归一化的是副本，残差保持原样。",
)
class NormalisesAfterAdding(_Encoder):
    def forward(self, x, mask=None):
        x = self.norm1(x + self.attn(x, x, mask))
        return self.norm2(x + self.ffn(x))


@mistake(
    "EncoderBlock",
    en="The normalised copy is added back instead of x itself: x = norm(x) overwrote the residual.",
    zh="加回去的是归一化后的副本，而不是 x 本身：x = norm(x) 把残差覆盖了。",
)
class AddsTheNormalisedCopy(_Encoder):
    def forward(self, x, mask=None):
        x = self.norm1(x)
        x = self.norm2(x + self.attn(x, x, mask))
        return x + self.ffn(x)


@mistake(
    "EncoderBlock",
    en="Only the queries are normalised: attn(norm1(x), x). In self-attention keys and values come from the same normalised copy.",
    zh="只归一化了查询：attn(norm1(x), x)。自注意力的键和值也应来自同一个归一化后的副本。",
)
class NormalisesTheQueriesOnly(_Encoder):
    def look(self, x, mask):
        return x + self.attn(self.norm1(x), x, mask)


@mistake(
    "EncoderBlock",
    en="The attention reads the raw x: norm1 is never used.",
    zh="注意力读的是未归一化的 x：没有用到 norm1。",
)
class ForgetsTheFirstNorm(_Encoder):
    def look(self, x, mask):
        return x + self.attn(x, x, mask)


@mistake(
    "EncoderBlock",
    en="The feed-forward net reads the raw x: norm2 is never used.",
    zh="前馈网络读的是未归一化的 x：没有用到 norm2。",
)
class ForgetsTheSecondNorm(_Encoder):
    def think(self, x):
        return x + self.ffn(x)


@mistake(
    "EncoderBlock",
    en="norm1 is used twice. The two norms have their own weights: norm2 comes before the feed-forward net.",
    zh="norm1 用了两次。两个归一化各有自己的权重：前馈网络之前是 norm2。",
)
class UsesTheFirstNormTwice(_Encoder):
    def think(self, x):
        return x + self.ffn(self.norm1(x))


@mistake(
    "EncoderBlock",
    en="The attention's output replaces x: its residual connection is missing.",
    zh="注意力的输出取代了 x：缺少残差连接。",
)
class ForgetsTheResidualOfTheAttention(_Encoder):
    def look(self, x, mask):
        return super().look(x, mask) - x


@mistake(
    "EncoderBlock",
    en="The feed-forward net's output replaces x: its residual connection is missing.",
    zh="前馈网络的输出取代了 x：缺少残差连接。",
)
class ForgetsTheResidualOfTheFeedForward(_Encoder):
    def think(self, x):
        return self.ffn(self.norm2(x))


@mistake(
    "EncoderBlock",
    en="The norm runs over the positions (axis 1), so tokens leak into each other. Each token is normalised over its own features.",
    zh="归一化做在了位置轴（第 1 轴）上，词元之间互相泄漏。每个词元应在自己的特征上归一化。",
)
class NormalisesOverTheSequence(_Encoder):
    def forward(self, x, mask=None):
        h = self.along(self.norm1, x)
        x = x + self.attn(h, h, mask)
        return x + self.ffn(self.along(self.norm2, x))

    def along(self, norm, x):
        return F.layer_norm(x.transpose(1, 2), x.shape[1:2], eps=norm.eps).transpose(1, 2) * norm.weight + norm.bias


@mistake(
    "EncoderBlock",
    en="Attention and feed-forward net run side by side on the same x. Here they run in turn: the second reads what the first gave.",
    zh="注意力和前馈网络并排读同一个 x。这里应先后进行：后者读前者的结果。",
)
class RunsBothSideBySide(_Encoder):
    def forward(self, x, mask=None):
        return self.look(x, mask) + self.ffn(self.norm2(x))


@mistake(
    "EncoderBlock",
    en="The feed-forward net uses ReLU, as in 2017. Use GELU.",
    zh="前馈网络用了 2017 年的 ReLU。要的是 GELU。",
)
class UsesRelu(_Encoder):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__(d_model, n_heads, d_ff)
        self.ffn[1] = nn.ReLU()


@mistake(
    "EncoderBlock",
    en="GELU is approximated by tanh. Use plain nn.GELU().",
    zh="GELU 用了 tanh 近似。要的是默认的 nn.GELU()。",
)
class ApproximatesGelu(_Encoder):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__(d_model, n_heads, d_ff)
        self.ffn[1] = nn.GELU(approximate="tanh")


@mistake(
    "EncoderBlock",
    en="The norms have another eps. Use plain nn.LayerNorm(d_model), with eps 1e-5.",
    zh="归一化的 eps 不对。要的是默认的 nn.LayerNorm(d_model)，eps 为 1e-5。",
)
class HasAnotherEpsilon(_Encoder):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__(d_model, n_heads, d_ff)
        self.norm1.eps = self.norm2.eps = 1e-6


@mistake(
    "EncoderBlock",
    en="The mask is not handed on to the attention.",
    zh="掩码没有交给注意力。",
)
class KeepsTheMaskToItself(_Encoder):
    def forward(self, x, mask=None):
        return super().forward(x)


@mistake(
    "EncoderBlock",
    en="The block hides the future by itself. An encoder sees everything; a causal mask is given by the caller.",
    zh="块自己遮住了未来。编码器应看到一切；要因果，由调用者给掩码。",
)
class EncodesCausally(_Encoder):
    def forward(self, x, mask=None):
        past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
        return super().forward(x, past if mask is None else mask & past)


# DecoderBlock


class _Decoder(right.DecoderBlock):
    """The right block taken apart, so that a mistake can replace one step."""

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.look(x, self_mask)
        return self.think(self.read(x, memory, memory_mask))

    def look(self, x, mask):
        h = self.norm1(x)
        return x + self.attn(h, h, mask)

    def read(self, x, memory, mask):
        return x + self.cross_attn(self.norm_cross(x), memory, mask)

    def think(self, x):
        return x + self.ffn(self.norm2(x))


@mistake(
    "DecoderBlock",
    en="self_mask is used for the cross-attention too. Only memory_mask says what may be seen of the memory.",
    zh="交叉注意力也用了 self_mask。memory 能看哪些位置，只由 memory_mask 决定。",
)
class UsesTheSelfMaskOnTheMemory(_Decoder):
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        return super().forward(x, memory, self_mask, self_mask)


@mistake(
    "DecoderBlock",
    en="memory_mask is used for the self-attention too. Only self_mask says what x may see of x.",
    zh="自注意力也用了 memory_mask。x 能看 x 的哪些位置，只由 self_mask 决定。",
)
class UsesTheMemoryMaskOnX(_Decoder):
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        return super().forward(x, memory, memory_mask, memory_mask)


@mistake(
    "DecoderBlock",
    en="The masks are exchanged: self_mask belongs to the self-attention, memory_mask to the cross-attention.",
    zh="两个掩码弄反了：self_mask 属于自注意力，memory_mask 属于交叉注意力。",
)
class ExchangesTheMasks(_Decoder):
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        return super().forward(x, memory, memory_mask, self_mask)


@mistake(
    "DecoderBlock",
    en="memory_mask is ignored: the padding of the memory is attended to.",
    zh="没有使用 memory_mask：memory 的填充也被看到了。",
)
class HearsThePaddingOfTheMemory(_Decoder):
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        return super().forward(x, memory, self_mask)


@mistake(
    "DecoderBlock",
    en="self_mask is ignored: the decoder sees the future.",
    zh="没有使用 self_mask：解码器看到了未来。",
)
class SeesTheFuture(_Decoder):
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        return super().forward(x, memory, None, memory_mask)


@mistake(
    "DecoderBlock",
    en="The block hides the future by itself. A causal mask is given by the caller: without self_mask nothing is hidden.",
    zh="块自己遮住了未来。是否因果由调用者的掩码决定：没有 self_mask 就什么都不遮。",
)
class DecodesCausallyUnasked(_Decoder):
    def look(self, x, mask):
        past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
        return super().look(x, past if mask is None else mask & past)


@mistake(
    "DecoderBlock",
    en="The cross-attention comes before the self-attention. The order is self, cross, feed-forward.",
    zh="交叉注意力排在了自注意力之前。次序应为自注意力、交叉注意力、前馈网络。",
)
class ReadsBeforeLooking(_Decoder):
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        return self.think(self.look(self.read(x, memory, memory_mask), self_mask))


@mistake(
    "DecoderBlock",
    en="In the cross-attention the memory asks and x answers. Queries come from x.",
    zh="交叉注意力里是 memory 在发问、x 在回答。查询应来自 x。",
)
class LetsTheMemoryAsk(_Decoder):
    def read(self, x, memory, mask):
        return x + self.cross_attn(memory, self.norm_cross(x), mask)


@mistake(
    "DecoderBlock",
    en="The cross-attention takes keys and values from x: the memory is never read.",
    zh="交叉注意力的键和值取自 x：memory 从未被读到。",
)
class ReadsItselfTwice(_Decoder):
    def read(self, x, memory, mask):
        h = self.norm_cross(x)
        return x + self.cross_attn(h, h, mask)


@mistake(
    "DecoderBlock",
    en="The memory is normalised again by norm_cross. The encoder has already done that: take the memory as it comes.",
    zh="memory 又经过了一次 norm_cross。这是编码器的事：memory 应原样使用。",
)
class NormalisesTheMemory(_Decoder):
    def read(self, x, memory, mask):
        return super().read(x, self.norm_cross(memory), mask)


@mistake(
    "DecoderBlock",
    en="The cross-attention reads the raw x: norm_cross is never used.",
    zh="交叉注意力读的是未归一化的 x：没有用到 norm_cross。",
)
class ForgetsTheNormBeforeTheMemory(_Decoder):
    def read(self, x, memory, mask):
        return x + self.cross_attn(x, memory, mask)


@mistake(
    "DecoderBlock",
    en="The cross-attention's output replaces x: its residual connection is missing.",
    zh="交叉注意力的输出取代了 x：缺少残差连接。",
)
class ForgetsTheResidualOfTheCross(_Decoder):
    def read(self, x, memory, mask):
        return self.cross_attn(self.norm_cross(x), memory, mask)


@mistake(
    "DecoderBlock",
    en="The cross-attention's query is made from the block's input, not from what the self-attention gave.",
    zh="交叉注意力的查询取自块的输入，而不是自注意力之后的结果。",
)
class AsksWithTheOldX(_Decoder):
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        read = self.cross_attn(self.norm_cross(x), memory, memory_mask)
        return self.think(self.look(x, self_mask) + read)


@mistake(
    "DecoderBlock",
    en="One attention serves both steps, so self and cross share their weights. `attn` and `cross_attn` are two modules.",
    zh="两步共用一个注意力，自注意力和交叉注意力的权重就共享了。`attn` 和 `cross_attn` 应是两个模块。",
)
class SharesOneAttention(_Decoder):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__(d_model, n_heads, d_ff)
        self.cross_attn = self.attn


@mistake(
    "DecoderBlock",
    en="The second step calls `attn` again: `cross_attn` exists, but is never used.",
    zh="第二步又调用了 `attn`：`cross_attn` 虽然建了，却从未用到。",
)
class CallsTheSelfAttentionTwice(_Decoder):
    def read(self, x, memory, mask):
        return x + self.attn(self.norm_cross(x), memory, mask)


@mistake(
    "DecoderBlock",
    en="This is post-LN: norm(x + step(x)). It should be pre-LN, x + step(norm(x)).",
    zh="这是 post-LN：norm(x + step(x))。要的是 pre-LN：x + step(norm(x))。",
)
class DecodesInPostLn(_Decoder):
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.attn(x, x, self_mask))
        x = self.norm_cross(x + self.cross_attn(x, memory, memory_mask))
        return self.norm2(x + self.ffn(x))
