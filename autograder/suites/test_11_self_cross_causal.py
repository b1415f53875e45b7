"""Chapter 11: self, cross and causal attention, and the blocks built from them."""

from functools import cache

import torch
from torch.func import functional_call

from autograder.exam import Broken, Module, Raised, agree, agree_gradients, promise, require
from autograder.reference import ch11_self_cross_causal as reference

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")
D_FF = 10


# A layer is one matrix here, its bias the last column. So the gradient of the key bias, which is nothing but rounding,
# is judged by the size of its layer's gradient.


def shapes(part, width, d_ff) -> dict[str, tuple[int, int]]:
    """The layers of a part, in order, as matrices with the bias as last column."""
    attention = {name: (width, width + 1) for name in PROJECTIONS}
    if part == "CrossAttention":
        return attention
    norm, crossing = (width, 2), {}
    if part == "DecoderBlock":
        crossing = {"norm_cross": norm} | {f"cross_attn.{name}": shape for name, shape in attention.items()}
    inner = {f"attn.{name}": shape for name, shape in attention.items()}
    last = {"norm2": norm, "ffn.0": (d_ff, width + 1), "ffn.2": (width, d_ff + 1)}
    return {"norm1": norm} | inner | crossing | last


def parameters(layers) -> dict[str, torch.Tensor]:
    """The layers as the parameters of the module."""
    named = {}
    for name, layer in layers.items():
        weight = layer[:, 0] if "norm" in name else layer[:, :-1]
        named[f"{name}.weight"], named[f"{name}.bias"] = weight.contiguous(), layer[:, -1].contiguous()
    return named


def CrossAttention(x, memory, mask=None, *, heads, **layers):
    """The reference module as a formula of its inputs and its layers; so are the two below."""
    return applied(blank("CrossAttention", x.shape[-1], heads), layers, x, memory, mask)


def EncoderBlock(x, mask=None, *, heads, **layers):
    return applied(blank("EncoderBlock", x.shape[-1], heads, len(layers["ffn.0"])), layers, x, mask)


def DecoderBlock(x, memory, self_mask=None, memory_mask=None, *, heads, **layers):
    module = blank("DecoderBlock", x.shape[-1], heads, len(layers["ffn.0"]))
    return applied(module, layers, x, memory, self_mask, memory_mask)


FORMULAS = {"CrossAttention": CrossAttention, "EncoderBlock": EncoderBlock, "DecoderBlock": DecoderBlock}


@cache
def blank(part, *sizes):
    """The reference module without numbers of its own."""
    with torch.device("meta"):
        return getattr(reference, part)(*sizes)


def applied(module, layers, *inputs):
    return functional_call(module, parameters(layers), inputs)


class Loaded:
    """The student's module with drawn layers, and what it must give."""

    def __init__(self, student, draw, part, width=12, heads=3, d_ff=D_FF, dtype=torch.float64):
        self.student, self.part, self.width, self.heads = student, part, width, heads
        self.layers = {name: drawn(draw, name, shape, dtype) for name, shape in shapes(part, width, d_ff).items()}
        self.module = built(student, part, width, heads, *(() if part == "CrossAttention" else (d_ff,)))
        self.module.to(dtype)
        try:
            self.module.load(**parameters(self.layers))
        except Raised as raised:
            raise with_names(raised, self.layers) from None

    def keeps(self, *inputs, **masks):
        """On these inputs it gives what the reference gives. Returns the student's value."""
        value = self.module(*inputs, **masks)
        self.agrees(value, *inputs, **masks)
        return value

    def agrees(self, value, *inputs, **masks):
        agree(value, FORMULAS[self.part], *inputs, heads=self.heads, **masks, **self.layers)

    def differentiates(self, draw, *inputs, **masks):
        """Values and gradients of all inputs and layers, by value. No gradient counts as a zero gradient."""
        cotangents, wrt = (draw(*inputs[0].shape),), range(len(inputs))
        found = self.module.vjp(*inputs, wrt=wrt, cotangents=cotangents, **masks)
        self.agrees(found.value, *inputs, **masks)
        gradients = [*found.gradients, *(self.gradient(found.parameter_gradients, name) for name in self.layers)]
        kwargs = {"heads": self.heads, **masks, **self.layers}
        agree_gradients(
            gradients, FORMULAS[self.part], *inputs, wrt=(*wrt, *self.layers), cotangents=cotangents, **kwargs
        )

    def gradient(self, named, layer) -> torch.Tensor:
        """A layer's gradients put together like the layer."""
        columns = []
        for name, weight in parameters({layer: self.layers[layer]}).items():
            gradient = named.get(name)
            gradient = torch.zeros_like(weight) if gradient is None else gradient
            require(
                gradient.shape == weight.shape,
                f"{self.part} → ∂/∂{name}: shape {list(gradient.shape)}, expected {list(weight.shape)}",
                f"{self.part} → ∂/∂{name}：形状为 {list(gradient.shape)}，应为 {list(weight.shape)}",
            )
            columns.append(gradient)
        return torch.column_stack(columns)

    def left_alone(self, *inputs, **masks):
        """Inputs stay as they were; training or not, the answer is the same."""
        self.keeps(*inputs, **masks)
        require(
            not self.student.changed_inputs(),
            f"{self.part}: the inputs were changed",
            f"{self.part}：输入被改动了",
        )
        self.module.eval()
        self.keeps(*inputs, **masks)


def drawn(draw, name, shape, dtype):
    if "norm" in name:
        return (draw(*shape, scale=0.3) + torch.tensor([1.0, 0.0])).to(dtype)
    return draw(*shape, scale=shape[1] ** -0.5, dtype=dtype)


def built(student, part, *sizes) -> Module:
    """The student's module, with whatever numbers it began with."""
    module = getattr(student, part)(*sizes)
    require(isinstance(module, Module), f"{part}: not an nn.Module", f"{part}：不是 nn.Module")
    return module


def with_names(raised, layers) -> Broken:
    """The same complaint, and which layers are expected."""
    names = ", ".join(layers)
    en, zh = raised.message["en"], raised.message["zh"]
    return Broken(raised.verdict, f"{en}\n  expected layers: {names}", f"{zh}\n  应有的层：{names}")


def tokens(draw, length=5, batch=2, width=12, dtype=torch.float64):
    return draw(batch, length, width, dtype=dtype)


def triangle(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def real(draw, batch, length):
    """[B, 1, 1, L]: True on real tokens. The first is real, the last is not."""
    mask = draw.mask(batch, 1, 1, length)
    mask[..., 0], mask[..., -1] = True, False
    return mask


# CrossAttention


@promise(
    "CrossAttention",
    en="Queries come from x, keys and values from the memory; every head attends on its own.",
    zh="查询来自 x，键和值来自 memory；每个头各做各的注意力。",
    weight=2,
)
def test_x_asks_and_the_memory_answers(student, draw):
    Loaded(student, draw, "CrossAttention").keeps(tokens(draw), tokens(draw, 7))


@promise(
    "CrossAttention",
    en="The memory may be longer or shorter than x, equally long, or a single token.",
    zh="memory 可以比 x 长、比 x 短、一样长，也可以只有一个词元。",
)
def test_the_memory_may_have_any_length(student, draw):
    attention = Loaded(student, draw, "CrossAttention")
    for length in (6, 2, 5, 1):
        attention.keeps(tokens(draw), tokens(draw, length))


@promise(
    "CrossAttention",
    en="Given x twice it is self-attention, and nothing is hidden unless a mask says so.",
    zh="两个输入都是 x，就是自注意力；没有掩码就什么都不遮。",
)
def test_given_x_twice_it_is_self_attention(student, draw):
    x = tokens(draw, 6)
    Loaded(student, draw, "CrossAttention").keeps(x, x)


@promise(
    "CrossAttention",
    en="The order of the memory does not matter.",
    zh="memory 里词元的顺序无关紧要。",
)
def test_the_order_of_the_memory_does_not_matter(student, draw):
    attention, x, memory = Loaded(student, draw, "CrossAttention"), tokens(draw), tokens(draw, 7)
    value = attention.keeps(x, memory[:, draw.permutation(7)])
    attention.agrees(value, x, memory)


@promise(
    "CrossAttention",
    en="mask [Lq, Lk]: True means may look, and row i is what query i may see.",
    zh="mask [Lq, Lk]：True 表示可以看，第 i 行是查询 i 能看到的。",
)
def test_a_mask_of_queries_and_keys_is_obeyed(student, draw):
    attention = Loaded(student, draw, "CrossAttention")
    attention.keeps(tokens(draw), tokens(draw, 7), mask=draw.mask(5, 7))
    attention.keeps(tokens(draw, 6), tokens(draw, 6), triangle(6))


@promise(
    "CrossAttention",
    en="Masks shared by heads or queries broadcast to [B, H, Lq, Lk]: padding is [B, 1, 1, Lk].",
    zh="各头或各查询共用的掩码广播到 [B, H, Lq, Lk]：填充掩码为 [B, 1, 1, Lk]。",
)
def test_shared_masks_broadcast(student, draw):
    attention, inputs = Loaded(student, draw, "CrossAttention"), (tokens(draw), tokens(draw, 7))
    for shape in ((2, 1, 1, 7), (2, 1, 5, 7), (3, 1, 7), (2, 3, 5, 7)):
        attention.keeps(*inputs, mask=draw.mask(*shape))


@promise(
    "CrossAttention",
    en="As many tokens or samples as heads: a mask still means what its shape says.",
    zh="词元数或样本数恰好等于头数时，掩码的含义仍由它的形状决定。",
)
def test_equal_sizes_do_not_confuse_the_axes(student, draw):
    attention = Loaded(student, draw, "CrossAttention")
    attention.keeps(tokens(draw, 3), tokens(draw, 3), mask=triangle(3))
    attention.keeps(tokens(draw, batch=3), tokens(draw, 7, batch=3), mask=real(draw, 3, 7))


@promise(
    "CrossAttention",
    en="A query that may look nowhere has head outputs 0: out_proj turns them into its bias, not into NaN.",
    zh="哪里都不许看的查询，各头输出为 0：经过 out_proj 得到它的偏置，而不是 NaN。",
)
def test_a_blind_query_gets_the_bias_of_the_output_layer(student, draw):
    Loaded(student, draw, "CrossAttention").keeps(tokens(draw), tokens(draw, 7), mask=blinding(draw, 5, 7))


def blinding(draw, lq, lk):
    """[B, 1, Lq, Lk]: sample 1 may see nothing, and neither may query 2 of sample 0."""
    mask = draw.mask(2, 1, lq, lk)
    mask[1], mask[0, :, 2] = False, False
    return mask


@promise(
    "CrossAttention",
    en="However large the score of a forbidden key is, nothing of it is seen.",
    zh="被禁止的键，分数再大也丝毫不露。",
)
def test_a_huge_forbidden_score_is_not_seen(student, draw):
    x, memory = tokens(draw), tokens(draw, 7)
    memory[:, -1] *= 1000
    Loaded(student, draw, "CrossAttention").keeps(x, memory, mask=real(draw, 2, 7))


@promise(
    "CrossAttention",
    en="Gradients of x, of the memory and of all layers are right, and finite for blind queries too.",
    zh="x、memory 和各层的梯度都正确；哪里都不许看的查询，梯度也是有限的。",
)
def test_gradients_reach_both_inputs_and_every_layer(student, draw):
    attention = Loaded(student, draw, "CrossAttention")
    attention.differentiates(draw, tokens(draw), tokens(draw, 7), mask=blinding(draw, 5, 7))


@promise("CrossAttention", en="Works in float32 and in bfloat16.", zh="在 float32 和 bfloat16 下都正确。")
def test_attention_in_lower_precision(student, draw):
    for dtype in (torch.float32, torch.bfloat16):
        attention = Loaded(student, draw, "CrossAttention", width=10, heads=2, dtype=dtype)
        inputs = (tokens(draw, length, batch=3, width=10, dtype=dtype) for length in (5, 7))
        attention.keeps(*inputs, mask=real(draw, 3, 7))


@promise(
    "CrossAttention",
    en="Heads that do not divide the width raise ValueError.",
    zh="头数不能整除宽度时抛出 ValueError。",
)
def test_heads_that_do_not_divide_are_refused(student, draw):
    require(
        refused(student, tokens(draw, width=10).float(), tokens(draw, 7, width=10).float()),
        "CrossAttention: heads that do not divide the width must raise ValueError",
        "CrossAttention：头数不能整除宽度时应抛出 ValueError",
    )
    Loaded(student, draw, "CrossAttention").keeps(tokens(draw), tokens(draw, 7))


def refused(student, *inputs) -> bool:
    """Whether the constructor, or at the latest the first call, raises ValueError."""
    try:
        built(student, "CrossAttention", 10, 4)(*inputs)
    except Raised as raised:
        return "ValueError" in raised.kinds
    return False


@promise(
    "CrossAttention",
    en="The inputs stay as they were, and asking twice, training or not, gives the same.",
    zh="不改动输入；无论是否处于训练模式，问两次答案相同。",
)
def test_attention_leaves_its_inputs_alone(student, draw):
    Loaded(student, draw, "CrossAttention").left_alone(tokens(draw), tokens(draw, 7), mask=draw.mask(2, 1, 5, 7))


# EncoderBlock


@promise(
    "EncoderBlock",
    en="x + attn(norm1(x)), then x + ffn(norm2(x)): each step reads a normalised copy and is added to the raw x.",
    zh="先 x + attn(norm1(x))，再 x + ffn(norm2(x))：每一步读的是归一化后的副本，结果加到原来的 x 上。",
    weight=2,
)
def test_each_step_reads_a_normalised_copy_and_is_added(student, draw):
    Loaded(student, draw, "EncoderBlock").keeps(tokens(draw))


@promise(
    "EncoderBlock",
    en="The feed-forward net may be wider or narrower than the model.",
    zh="前馈网络可以比模型宽，也可以比模型窄。",
)
def test_the_inner_width_is_free(student, draw):
    for d_ff in (7, 48):
        Loaded(student, draw, "EncoderBlock", d_ff=d_ff).keeps(tokens(draw, 6))


@promise(
    "EncoderBlock",
    en="Each token is normalised by itself, whatever the size of its neighbours.",
    zh="每个词元只按自己归一化，不管旁边的词元有多大。",
)
def test_each_token_is_normalised_by_itself(student, draw):
    x = tokens(draw)
    x[:, 0], x[:, 1] = 100 * x[:, 0], 0.001 * x[:, 1] + 3
    Loaded(student, draw, "EncoderBlock").keeps(x)


@promise(
    "EncoderBlock",
    en="Without positions, shuffled tokens give the same outputs, shuffled.",
    zh="没有位置信息时，打乱词元，输出只是跟着打乱。",
)
def test_shuffled_tokens_give_shuffled_outputs(student, draw):
    block, x, order = Loaded(student, draw, "EncoderBlock"), tokens(draw, 6), draw.permutation(6)
    value = block.keeps(x[:, order])
    block.agrees(value[:, order.argsort()], x)


@promise(
    "EncoderBlock",
    en="The mask is handed to the attention: True means may look.",
    zh="掩码交给注意力：True 表示可以看。",
)
def test_the_mask_reaches_the_attention(student, draw):
    block = Loaded(student, draw, "EncoderBlock")
    block.keeps(tokens(draw), mask=draw.mask(2, 1, 5, 5))
    block.keeps(tokens(draw, 6), triangle(6))


@promise(
    "EncoderBlock",
    en="Padding [B, 1, 1, L]: rewriting padded tokens changes no real token's output.",
    zh="填充掩码 [B, 1, 1, L]：改写填充词元，真实词元的输出不变。",
)
def test_padding_is_not_heard(student, draw):
    block, x, mask = Loaded(student, draw, "EncoderBlock"), tokens(draw, 6), real(draw, 2, 6)
    block.keeps(x, mask=mask)
    block.keeps(torch.where(mask[:, 0, 0, :, None], x, 50 * tokens(draw, 6)), mask=mask)


@promise(
    "EncoderBlock",
    en="With a causal mask the whole block is causal: rewriting tokens 3 and 4 leaves outputs 0, 1 and 2 as they were.",
    zh="用上因果掩码，整个块就是因果的：改写第 3、4 个词元，第 0、1、2 个输出不变。",
)
def test_a_causal_mask_makes_the_whole_block_causal(student, draw):
    block, x = Loaded(student, draw, "EncoderBlock"), tokens(draw)
    block.keeps(x, mask=triangle(5))
    block.keeps(rewritten(x), mask=triangle(5))


def rewritten(x, start=3):
    return torch.cat((x[:, :start], 10 * torch.flip(x, (1,))[:, : x.shape[1] - start] + 1), 1)


@promise(
    "EncoderBlock",
    en="A token that may look nowhere keeps its own vector and stays finite.",
    zh="哪里都不许看的词元保留自己的向量，结果有限。",
)
def test_a_blind_token_keeps_its_own_vector(student, draw):
    Loaded(student, draw, "EncoderBlock").keeps(tokens(draw), mask=blinding(draw, 5, 5))


@promise(
    "EncoderBlock",
    en="Gradients of x and of all layers are right.",
    zh="x 和各层的梯度都正确。",
)
def test_gradients_reach_every_layer_of_the_encoder(student, draw):
    block = Loaded(student, draw, "EncoderBlock")
    block.differentiates(draw, tokens(draw), mask=blinding(draw, 5, 5))


@promise("EncoderBlock", en="Works in float32 as well.", zh="在 float32 下也正确。")
def test_the_encoder_in_float32(student, draw):
    block = Loaded(student, draw, "EncoderBlock", width=10, heads=2, d_ff=7, dtype=torch.float32)
    block.keeps(tokens(draw, batch=3, width=10, dtype=torch.float32), mask=real(draw, 3, 5))


@promise(
    "EncoderBlock",
    en="The input stays as it was, and asking twice, training or not, gives the same.",
    zh="不改动输入；无论是否处于训练模式，问两次答案相同。",
)
def test_the_encoder_leaves_its_input_alone(student, draw):
    Loaded(student, draw, "EncoderBlock").left_alone(tokens(draw), mask=draw.mask(5, 5))


# DecoderBlock


@promise(
    "DecoderBlock",
    en="Self-attention, then cross-attention, then the feed-forward net; each reads a normalised copy and is added to x.",
    zh="先自注意力，再交叉注意力，最后前馈网络；每一步都读归一化后的副本，结果加到 x 上。",
    weight=2,
)
def test_self_then_cross_then_feed_forward(student, draw):
    Loaded(student, draw, "DecoderBlock").keeps(tokens(draw), tokens(draw, 7))


@promise(
    "DecoderBlock",
    en="The memory may be longer or shorter than x, or equally long.",
    zh="memory 可以比 x 长、比 x 短，也可以一样长。",
)
def test_the_decoder_takes_a_memory_of_any_length(student, draw):
    block = Loaded(student, draw, "DecoderBlock")
    for length in (6, 2, 5):
        block.keeps(tokens(draw), tokens(draw, length))


@promise(
    "DecoderBlock",
    en="The memory is taken as it comes: it is not normalised again.",
    zh="memory 原样使用：不再归一化一次。",
)
def test_the_memory_is_taken_as_it_comes(student, draw):
    Loaded(student, draw, "DecoderBlock").keeps(tokens(draw), 3 * tokens(draw, 7) + 2)


@promise(
    "DecoderBlock",
    en="self_mask says what x may see of x, and says nothing about the memory.",
    zh="self_mask 规定 x 能看到 x 的哪些位置，与 memory 无关。",
)
def test_the_self_mask_acts_on_x_alone(student, draw):
    block = Loaded(student, draw, "DecoderBlock")
    block.keeps(tokens(draw), tokens(draw, 7), self_mask=triangle(5))
    block.keeps(tokens(draw, 6), tokens(draw, 6), self_mask=triangle(6))


@promise(
    "DecoderBlock",
    en="memory_mask says what x may see of the memory, and says nothing about x.",
    zh="memory_mask 规定 x 能看到 memory 的哪些位置，与 x 自身无关。",
)
def test_the_memory_mask_acts_on_the_memory_alone(student, draw):
    block = Loaded(student, draw, "DecoderBlock")
    block.keeps(tokens(draw), tokens(draw, 7), memory_mask=real(draw, 2, 7))
    block.keeps(tokens(draw, 6), tokens(draw, 6), memory_mask=draw.mask(2, 1, 6, 6))


@promise(
    "DecoderBlock",
    en="Both masks at once, in the order self_mask, memory_mask.",
    zh="两个掩码同时给出，次序为 self_mask、memory_mask。",
)
def test_both_masks_act_each_in_its_place(student, draw):
    block = Loaded(student, draw, "DecoderBlock")
    block.keeps(tokens(draw), tokens(draw, 7), self_mask=triangle(5), memory_mask=real(draw, 2, 7))
    masks = {"self_mask": triangle(6), "memory_mask": draw.mask(6, 6)}
    block.keeps(tokens(draw, 6), tokens(draw, 6), **masks)


@promise(
    "DecoderBlock",
    en="With a causal self_mask no output sees the future: rewriting tokens 3 and 4 leaves outputs 0, 1 and 2 as they were.",
    zh="用上因果的 self_mask，任何输出都看不到未来：改写第 3、4 个词元，第 0、1、2 个输出不变。",
)
def test_the_whole_decoder_is_causal(student, draw):
    block, x, memory = Loaded(student, draw, "DecoderBlock"), tokens(draw), tokens(draw, 7)
    block.keeps(x, memory, self_mask=triangle(5))
    block.keeps(rewritten(x), memory, self_mask=triangle(5))


@promise(
    "DecoderBlock",
    en="Rewriting the padding of the memory changes nothing.",
    zh="改写 memory 的填充，什么都不变。",
)
def test_the_padding_of_the_memory_is_not_heard(student, draw):
    block, x, memory = Loaded(student, draw, "DecoderBlock"), tokens(draw), tokens(draw, 7)
    mask = real(draw, 2, 7)
    other = torch.where(mask[:, 0, 0, :, None], memory, 50 * tokens(draw, 7))
    value = block.keeps(x, other, memory_mask=mask)
    block.agrees(value, x, memory, memory_mask=mask)


@promise(
    "DecoderBlock",
    en="The order of the memory does not matter.",
    zh="memory 里词元的顺序无关紧要。",
)
def test_the_decoder_ignores_the_order_of_the_memory(student, draw):
    block, x, memory = Loaded(student, draw, "DecoderBlock"), tokens(draw), tokens(draw, 7)
    value = block.keeps(x, memory[:, draw.permutation(7)])
    block.agrees(value, x, memory)


@promise(
    "DecoderBlock",
    en="A sample whose memory is all padding stays finite: self-attention and the feed-forward net still work.",
    zh="某个样本的 memory 全是填充，结果仍然有限：自注意力和前馈网络照常工作。",
)
def test_a_memory_of_padding_alone_stays_finite(student, draw):
    masks = {"self_mask": triangle(5), "memory_mask": blinding(draw, 5, 7)}
    Loaded(student, draw, "DecoderBlock").keeps(tokens(draw), tokens(draw, 7), **masks)


@promise(
    "DecoderBlock",
    en="Gradients of x, of the memory and of all layers are right.",
    zh="x、memory 和各层的梯度都正确。",
)
def test_gradients_reach_every_layer_of_the_decoder(student, draw):
    masks = {"self_mask": triangle(5), "memory_mask": blinding(draw, 5, 7)}
    Loaded(student, draw, "DecoderBlock").differentiates(draw, tokens(draw), tokens(draw, 7), **masks)


@promise("DecoderBlock", en="Works in float32 as well.", zh="在 float32 下也正确。")
def test_the_decoder_in_float32(student, draw):
    block = Loaded(student, draw, "DecoderBlock", width=10, heads=2, d_ff=9, dtype=torch.float32)
    x, memory = (tokens(draw, length, batch=3, width=10, dtype=torch.float32) for length in (5, 7))
    block.keeps(x, memory, self_mask=triangle(5), memory_mask=real(draw, 3, 7))


@promise(
    "DecoderBlock",
    en="The inputs stay as they were, and asking twice, training or not, gives the same.",
    zh="不改动输入；无论是否处于训练模式，问两次答案相同。",
)
def test_the_decoder_leaves_its_inputs_alone(student, draw):
    masks = {"self_mask": triangle(5), "memory_mask": real(draw, 2, 7)}
    Loaded(student, draw, "DecoderBlock").left_alone(tokens(draw), tokens(draw, 7), **masks)
