"""Chapter 11: self, cross and causal attention, and the blocks built from them."""

import torch

from autograder.exam import PRECISIONS, Broken, Loaded, ModuleFormula, Raised, promise, require_refused, triangle
from autograder.exam.sentences import (
    BLIND_QUERY_GETS_THE_BIAS,
    FLOAT32,
    FLOAT32_AND_BFLOAT16,
    FORBIDDEN_SCORE_HAS_NO_EFFECT,
    HEADS_MUST_DIVIDE_THE_WIDTH,
    INPUTS_STAY_IN_TRAINING_TOO,
    MEMORY_HAS_NO_ORDER,
)
from autograder.reference import ch11_self_cross_causal as reference

D_FF = 10


class BlockFormula(ModuleFormula):
    """A norm is two columns, and the scale of a layer counts its bias."""

    norm_axis, scale_counts_bias = 1, True


class Block(Loaded):
    """If the layers cannot be loaded, the message lists those that are expected."""

    formula_class = BlockFormula

    def load(self):
        try:
            super().load()
        except Raised as raised:
            names, (en, zh) = ", ".join(self.layers), (raised.message.en, raised.message.zh)
            raise Broken(raised.verdict, f"{en}\n  expected layers: {names}", f"{zh}\n  应有的层：{names}") from None


def cross_attention(student, draw, width=12, heads=3, dtype=torch.float64) -> Block:
    return Block(student, draw, reference.CrossAttention, width, heads, dtype=dtype)


def encoder(student, draw, width=12, heads=3, d_ff=D_FF, dtype=torch.float64) -> Block:
    return Block(student, draw, reference.EncoderBlock, width, heads, d_ff, dtype=dtype)


def decoder(student, draw, width=12, heads=3, d_ff=D_FF, dtype=torch.float64) -> Block:
    return Block(student, draw, reference.DecoderBlock, width, heads, d_ff, dtype=dtype)


def tokens(draw, length=5, batch=2, width=12, dtype=torch.float64):
    return draw(batch, length, width, dtype=dtype)


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
    cross_attention(student, draw).keeps(tokens(draw), tokens(draw, 7))


@promise(
    "CrossAttention",
    en="The memory may be longer or shorter than x, equally long, or a single token.",
    zh="memory 可以比 x 长、比 x 短、一样长，也可以只有一个词元。",
)
def test_the_memory_may_have_any_length(student, draw):
    attention = cross_attention(student, draw)
    for length in (6, 2, 5, 1):
        attention.keeps(tokens(draw), tokens(draw, length))


@promise(
    "CrossAttention",
    en="Given x twice it is self-attention, and nothing is hidden unless a mask says so.",
    zh="两个输入都是 x，就是自注意力；没有掩码就什么都不遮。",
)
def test_given_x_twice_it_is_self_attention(student, draw):
    x = tokens(draw, 6)
    cross_attention(student, draw).keeps(x, x)


@promise("CrossAttention", MEMORY_HAS_NO_ORDER)
def test_the_order_of_the_memory_does_not_matter(student, draw):
    attention, x, memory = cross_attention(student, draw), tokens(draw), tokens(draw, 7)
    value = attention.keeps(x, memory[:, draw.permutation(7)])
    attention.agrees(value, x, memory)


@promise(
    "CrossAttention",
    en="mask [Lq, Lk]: True means may look, and row i is what query i may see.",
    zh="mask [Lq, Lk]：True 表示可以看，第 i 行是查询 i 能看到的。",
)
def test_a_mask_of_queries_and_keys_is_obeyed(student, draw):
    attention = cross_attention(student, draw)
    attention.keeps(tokens(draw), tokens(draw, 7), mask=draw.mask(5, 7))
    attention.keeps(tokens(draw, 6), tokens(draw, 6), triangle(6))


@promise(
    "CrossAttention",
    en="Masks shared by heads or queries broadcast to [B, H, Lq, Lk]: padding is [B, 1, 1, Lk].",
    zh="各头或各查询共用的掩码广播到 [B, H, Lq, Lk]：填充掩码为 [B, 1, 1, Lk]。",
)
def test_shared_masks_broadcast(student, draw):
    attention, inputs = cross_attention(student, draw), (tokens(draw), tokens(draw, 7))
    for shape in ((2, 1, 1, 7), (2, 1, 5, 7), (3, 1, 7), (2, 3, 5, 7)):
        attention.keeps(*inputs, mask=draw.mask(*shape))


@promise(
    "CrossAttention",
    en="With as many tokens or samples as heads, a mask still means what its shape says.",
    zh="词元数或样本数恰好等于头数时，掩码的含义仍由它的形状决定。",
)
def test_equal_sizes_do_not_confuse_the_axes(student, draw):
    attention = cross_attention(student, draw)
    attention.keeps(tokens(draw, 3), tokens(draw, 3), mask=triangle(3))
    attention.keeps(tokens(draw, batch=3), tokens(draw, 7, batch=3), mask=real(draw, 3, 7))


@promise("CrossAttention", BLIND_QUERY_GETS_THE_BIAS)
def test_a_blind_query_gets_the_bias_of_the_output_layer(student, draw):
    cross_attention(student, draw).keeps(tokens(draw), tokens(draw, 7), mask=blinding(draw, 5, 7))


def blinding(draw, lq, lk):
    """[B, 1, Lq, Lk]: sample 1 may see nothing, and neither may query 2 of sample 0."""
    mask = draw.mask(2, 1, lq, lk)
    mask[1], mask[0, :, 2] = False, False
    return mask


@promise("CrossAttention", FORBIDDEN_SCORE_HAS_NO_EFFECT)
def test_a_huge_forbidden_score_is_not_seen(student, draw):
    x, memory = tokens(draw), tokens(draw, 7)
    memory[:, -1] *= 1000
    cross_attention(student, draw).keeps(x, memory, mask=real(draw, 2, 7))


@promise(
    "CrossAttention",
    en="Gradients of x, of the memory and of all layers are right, and finite for queries that may look nowhere.",
    zh="x、memory 和各层的梯度都正确；哪里都不许看的查询，梯度也是有限的。",
)
def test_gradients_reach_both_inputs_and_every_layer(student, draw):
    attention = cross_attention(student, draw)
    inputs, mask = (tokens(draw), tokens(draw, 7)), blinding(draw, 5, 7)
    attention.differentiates(*inputs, mask=mask, cotangents=(tokens(draw),))


@promise("CrossAttention", FLOAT32_AND_BFLOAT16)
def test_attention_in_lower_precision(student, draw):
    for dtype in PRECISIONS:
        attention = cross_attention(student, draw, width=10, heads=2, dtype=dtype)
        inputs = (tokens(draw, length, batch=3, width=10, dtype=dtype) for length in (5, 7))
        attention.keeps(*inputs, mask=real(draw, 3, 7))


@promise("CrossAttention", HEADS_MUST_DIVIDE_THE_WIDTH)
def test_heads_that_do_not_divide_are_refused(student, draw):
    inputs = tokens(draw, width=10).float(), tokens(draw, 7, width=10).float()
    what = {"en": "heads that do not divide the width", "zh": "头数不能整除宽度"}
    require_refused(student, "CrossAttention", 10, 4, inputs=inputs, **what)
    cross_attention(student, draw).keeps(tokens(draw), tokens(draw, 7))


@promise("CrossAttention", INPUTS_STAY_IN_TRAINING_TOO)
def test_attention_leaves_its_inputs_alone(student, draw):
    cross_attention(student, draw).leaves_alone(tokens(draw), tokens(draw, 7), mask=draw.mask(2, 1, 5, 7))


# EncoderBlock


@promise(
    "EncoderBlock",
    en="x + attn(norm1(x)), then x + ffn(norm2(x)): each step reads a normalised copy and is added to the raw x.",
    zh="先 x + attn(norm1(x))，再 x + ffn(norm2(x))：每一步读的是归一化后的副本，结果加到原来的 x 上。",
    weight=2,
)
def test_each_step_reads_a_normalised_copy_and_is_added(student, draw):
    encoder(student, draw).keeps(tokens(draw))


@promise(
    "EncoderBlock",
    en="The feed-forward net may be wider or narrower than the model.",
    zh="前馈网络可以比模型宽，也可以比模型窄。",
)
def test_the_inner_width_is_free(student, draw):
    for d_ff in (7, 48):
        encoder(student, draw, d_ff=d_ff).keeps(tokens(draw, 6))


@promise(
    "EncoderBlock",
    en="Each token is normalised by itself, whatever the size of its neighbours.",
    zh="每个词元只按自己归一化，不管旁边的词元有多大。",
)
def test_each_token_is_normalised_by_itself(student, draw):
    x = tokens(draw)
    x[:, 0], x[:, 1] = 100 * x[:, 0], 0.001 * x[:, 1] + 3
    encoder(student, draw).keeps(x)


@promise(
    "EncoderBlock",
    en="Without positions, shuffled tokens give the same outputs, shuffled.",
    zh="没有位置信息时，打乱词元，输出只是跟着打乱。",
)
def test_shuffled_tokens_give_shuffled_outputs(student, draw):
    block, x, order = encoder(student, draw), tokens(draw, 6), draw.permutation(6)
    value = block.keeps(x[:, order])
    block.agrees(value[:, order.argsort()], x)


@promise(
    "EncoderBlock",
    en="The mask is handed to the attention: True means may look.",
    zh="掩码交给注意力：True 表示可以看。",
)
def test_the_mask_reaches_the_attention(student, draw):
    block = encoder(student, draw)
    block.keeps(tokens(draw), mask=draw.mask(2, 1, 5, 5))
    block.keeps(tokens(draw, 6), triangle(6))


@promise(
    "EncoderBlock",
    en="Padding [B, 1, 1, L]: rewriting padded tokens changes no real token's output.",
    zh="填充掩码 [B, 1, 1, L]：改写填充词元，真实词元的输出不变。",
)
def test_padding_is_not_heard(student, draw):
    block, x, mask = encoder(student, draw), tokens(draw, 6), real(draw, 2, 6)
    block.keeps(x, mask=mask)
    block.keeps(torch.where(mask[:, 0, 0, :, None], x, 50 * tokens(draw, 6)), mask=mask)


@promise(
    "EncoderBlock",
    en="With a causal mask the whole block is causal: rewriting tokens 3 and 4 leaves outputs 0, 1 and 2 as they were.",
    zh="用上因果掩码，整个块就是因果的：改写 3、4 号词元，0、1、2 号输出不变。",
)
def test_a_causal_mask_makes_the_whole_block_causal(student, draw):
    block, x = encoder(student, draw), tokens(draw)
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
    encoder(student, draw).keeps(tokens(draw), mask=blinding(draw, 5, 5))


@promise(
    "EncoderBlock",
    en="Gradients of x and of all layers are right.",
    zh="x 和各层的梯度都正确。",
)
def test_gradients_reach_every_layer_of_the_encoder(student, draw):
    block = encoder(student, draw)
    x, mask = tokens(draw), blinding(draw, 5, 5)
    block.differentiates(x, mask=mask, cotangents=(tokens(draw),))


@promise("EncoderBlock", FLOAT32)
def test_the_encoder_in_float32(student, draw):
    block = encoder(student, draw, width=10, heads=2, d_ff=7, dtype=torch.float32)
    block.keeps(tokens(draw, batch=3, width=10, dtype=torch.float32), mask=real(draw, 3, 5))


@promise("EncoderBlock", INPUTS_STAY_IN_TRAINING_TOO)
def test_the_encoder_leaves_its_input_alone(student, draw):
    encoder(student, draw).leaves_alone(tokens(draw), mask=draw.mask(5, 5))


# DecoderBlock


@promise(
    "DecoderBlock",
    en="Self-attention, then cross-attention, then the feed-forward net; each reads a normalised copy and is added to x.",
    zh="先自注意力，再交叉注意力，最后前馈网络；每一步都读归一化后的副本，结果加到 x 上。",
    weight=2,
)
def test_self_then_cross_then_feed_forward(student, draw):
    decoder(student, draw).keeps(tokens(draw), tokens(draw, 7))


@promise(
    "DecoderBlock",
    en="The memory may be longer or shorter than x, or equally long.",
    zh="memory 可以比 x 长、比 x 短，也可以一样长。",
)
def test_the_decoder_takes_a_memory_of_any_length(student, draw):
    block = decoder(student, draw)
    for length in (6, 2, 5):
        block.keeps(tokens(draw), tokens(draw, length))


@promise(
    "DecoderBlock",
    en="The memory is used as it is: it is not normalised again.",
    zh="memory 原样使用：不再归一化一次。",
)
def test_the_memory_is_taken_as_it_comes(student, draw):
    decoder(student, draw).keeps(tokens(draw), 3 * tokens(draw, 7) + 2)


@promise(
    "DecoderBlock",
    en="self_mask says what x may see of x, and says nothing about the memory.",
    zh="self_mask 规定 x 能看到 x 的哪些位置，与 memory 无关。",
)
def test_the_self_mask_acts_on_x_alone(student, draw):
    block = decoder(student, draw)
    block.keeps(tokens(draw), tokens(draw, 7), self_mask=triangle(5))
    block.keeps(tokens(draw, 6), tokens(draw, 6), self_mask=triangle(6))


@promise(
    "DecoderBlock",
    en="memory_mask says what x may see of the memory, and says nothing about x.",
    zh="memory_mask 规定 x 能看到 memory 的哪些位置，与 x 自身无关。",
)
def test_the_memory_mask_acts_on_the_memory_alone(student, draw):
    block = decoder(student, draw)
    block.keeps(tokens(draw), tokens(draw, 7), memory_mask=real(draw, 2, 7))
    block.keeps(tokens(draw, 6), tokens(draw, 6), memory_mask=draw.mask(2, 1, 6, 6))


@promise(
    "DecoderBlock",
    en="Both masks at once, in the order self_mask, memory_mask.",
    zh="两个掩码同时给出，次序为 self_mask、memory_mask。",
)
def test_both_masks_act_each_in_its_place(student, draw):
    block = decoder(student, draw)
    block.keeps(tokens(draw), tokens(draw, 7), self_mask=triangle(5), memory_mask=real(draw, 2, 7))
    masks = {"self_mask": triangle(6), "memory_mask": draw.mask(6, 6)}
    block.keeps(tokens(draw, 6), tokens(draw, 6), **masks)


@promise(
    "DecoderBlock",
    en="With a causal self_mask no output sees the future: rewriting tokens 3 and 4 leaves outputs 0, 1 and 2 as they were.",
    zh="用上因果的 self_mask，任何输出都看不到未来：改写 3、4 号词元，0、1、2 号输出不变。",
)
def test_the_whole_decoder_is_causal(student, draw):
    block, x, memory = decoder(student, draw), tokens(draw), tokens(draw, 7)
    block.keeps(x, memory, self_mask=triangle(5))
    block.keeps(rewritten(x), memory, self_mask=triangle(5))


@promise(
    "DecoderBlock",
    en="Rewriting the padding of the memory changes nothing.",
    zh="改写 memory 的填充，什么都不变。",
)
def test_the_padding_of_the_memory_is_not_heard(student, draw):
    block, x, memory = decoder(student, draw), tokens(draw), tokens(draw, 7)
    mask = real(draw, 2, 7)
    other = torch.where(mask[:, 0, 0, :, None], memory, 50 * tokens(draw, 7))
    value = block.keeps(x, other, memory_mask=mask)
    block.agrees(value, x, memory, memory_mask=mask)


@promise("DecoderBlock", MEMORY_HAS_NO_ORDER)
def test_the_decoder_ignores_the_order_of_the_memory(student, draw):
    block, x, memory = decoder(student, draw), tokens(draw), tokens(draw, 7)
    value = block.keeps(x, memory[:, draw.permutation(7)])
    block.agrees(value, x, memory)


@promise(
    "DecoderBlock",
    en="A sample whose memory is all padding stays finite: self-attention and the feed-forward net still work.",
    zh="某个样本的 memory 全是填充，结果仍然有限：自注意力和前馈网络照常工作。",
)
def test_a_memory_of_padding_alone_stays_finite(student, draw):
    masks = {"self_mask": triangle(5), "memory_mask": blinding(draw, 5, 7)}
    decoder(student, draw).keeps(tokens(draw), tokens(draw, 7), **masks)


@promise(
    "DecoderBlock",
    en="Gradients of x, of the memory and of all layers are right.",
    zh="x、memory 和各层的梯度都正确。",
)
def test_gradients_reach_every_layer_of_the_decoder(student, draw):
    masks = {"self_mask": triangle(5), "memory_mask": blinding(draw, 5, 7)}
    block, inputs = decoder(student, draw), (tokens(draw), tokens(draw, 7))
    block.differentiates(*inputs, **masks, cotangents=(tokens(draw),))


@promise("DecoderBlock", FLOAT32)
def test_the_decoder_in_float32(student, draw):
    block = decoder(student, draw, width=10, heads=2, d_ff=9, dtype=torch.float32)
    x, memory = (tokens(draw, length, batch=3, width=10, dtype=torch.float32) for length in (5, 7))
    block.keeps(x, memory, self_mask=triangle(5), memory_mask=real(draw, 3, 7))


@promise("DecoderBlock", INPUTS_STAY_IN_TRAINING_TOO)
def test_the_decoder_leaves_its_inputs_alone(student, draw):
    masks = {"self_mask": triangle(5), "memory_mask": real(draw, 2, 7)}
    decoder(student, draw).leaves_alone(tokens(draw), tokens(draw, 7), **masks)
