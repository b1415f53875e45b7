"""Chapter 13: what attention costs. Counts stay below 2**53, so an answer that is a float is exact too."""

from autograder.exam import matches, promise
from autograder.reference import ch13_cost as reference


def sizes(draw, *ranges):
    """One whole number from each range; the ranges do not overlap, so no two are equal."""
    return [draw.integer(low, high) for low, high in ranges]


@promise(
    "attention_flops",
    en="Four projections, the scores and the mixing, an addition and a multiplication each: 8·B·n·d² + 4·B·n²·d.",
    zh="四个投影、打分和混合，乘法与加法各算一次：8·B·n·d² + 4·B·n²·d。",
    weight=2,
)
def test_projections_scores_and_mixing_are_counted(student, draw):
    matches(student, reference.attention_flops, *sizes(draw, (2, 6), (11, 19), (23, 40)))
    matches(student, reference.attention_flops, *sizes(draw, (7, 9), (50, 90), (11, 16)))


@promise(
    "attention_flops",
    en="Twice the length: the projections double, scores and mixing quadruple.",
    zh="长度加倍：投影的计算量加倍，打分和混合变为四倍。",
)
def test_the_length_is_squared_in_the_scores_only(student, draw):
    batch, length, width = sizes(draw, (2, 5), (7, 12), (51, 64))
    for factor in (1, 2, 4):
        matches(student, reference.attention_flops, batch, factor * length, width)


@promise(
    "attention_flops",
    en="Twice the width: the projections quadruple, scores and mixing double.",
    zh="宽度加倍：投影的计算量变为四倍，打分和混合加倍。",
)
def test_the_width_is_squared_in_the_projections_only(student, draw):
    batch, length, width = sizes(draw, (2, 5), (301, 340), (7, 12))
    for factor in (1, 2, 4):
        matches(student, reference.attention_flops, batch, length, factor * width)


@promise(
    "attention_flops",
    en="Below n = 2d the projections cost more, at n = 2d both halves cost the same, beyond it the scores cost more.",
    zh="n < 2d 时投影更贵，n = 2d 时两半一样贵，再长就是打分更贵。",
)
def test_the_halves_are_equal_at_twice_the_width(student, draw):
    batch, width = sizes(draw, (2, 6), (30, 50))
    for length in (width // 2, 2 * width, 9 * width):
        matches(student, reference.attention_flops, batch, length, width)


@promise(
    "attention_flops",
    en="The batch multiplies everything: examples never attend to each other.",
    zh="批次大小乘在每一项上：样本之间互不注意。",
)
def test_the_batch_multiplies_everything(student, draw):
    length, width = sizes(draw, (11, 19), (23, 40))
    for batch in (1, draw.integer(2, 4), draw.integer(5, 9)):
        matches(student, reference.attention_flops, batch, length, width)


@promise(
    "attention_flops",
    en="Arguments may be named, and at the size of real models every digit is right.",
    zh="参数可以按名字传递；在真实模型的规模下，每一位数字都正确。",
)
def test_flops_at_the_size_of_real_models(student, draw):
    matches(student, reference.attention_flops, batch=32, length=20, d_model=512)
    batch, length = sizes(draw, (2, 8), (2001, 9001))
    matches(student, reference.attention_flops, d_model=4096, batch=batch, length=length)


@promise(
    "block_parameters",
    en="Four matrices of attention, two of the feed-forward network, two LayerNorms, and every bias are counted.",
    zh="注意力的四个矩阵、前馈网络的两个矩阵、两个 LayerNorm，以及所有的偏置都数到了。",
    weight=2,
)
def test_every_parameter_of_a_block_is_counted(student, draw):
    matches(student, reference.block_parameters, *sizes(draw, (11, 30), (45, 97)))
    matches(student, reference.block_parameters, *sizes(draw, (200, 300), (701, 790)))


@promise(
    "block_parameters",
    en="With d_ff = 4h it is 12h² + 13h.",
    zh="d_ff = 4h 时等于 12h² + 13h。",
)
def test_four_times_as_wide_inside(student, draw):
    for width in (draw.integer(5, 40), 768):
        matches(student, reference.block_parameters, width, 4 * width)


@promise(
    "block_parameters",
    en="d_ff may be anything, also narrower than d_model, and each bias is as wide as its layer's output.",
    zh="d_ff 可以是任何数，也可以比 d_model 窄；每个偏置的大小是那一层输出的宽度。",
)
def test_a_narrow_feed_forward_network(student, draw):
    width, inner = sizes(draw, (60, 90), (7, 14))
    matches(student, reference.block_parameters, width, inner)
    matches(student, reference.block_parameters, d_model=width, d_ff=6 * width + inner)


@promise(
    "block_parameters",
    en="In a tiny block, where vectors count as much as matrices, none is missing.",
    zh="在很小的块里，向量和矩阵一样举足轻重，一个也不少。",
)
def test_a_tiny_block(student, draw):
    for width, inner in ((2, 3), (3, 5), (2, draw.integer(5, 9))):
        matches(student, reference.block_parameters, width, inner)


@promise(
    "kv_cache_bytes",
    en="A key and a value for every layer, KV head, channel, token and example.",
    zh="每一层、每个键值头、每个通道、每个词元、每个样本都有一个键和一个值。",
    weight=2,
)
def test_keys_and_values_of_everything_are_kept(student, draw):
    matches(student, reference.kv_cache_bytes, *sizes(draw, (3, 6), (7, 9), (11, 19), (23, 40), (41, 50)), 4)
    matches(student, reference.kv_cache_bytes, *sizes(draw, (80, 90), (3, 5), (60, 70), (900, 999), (6, 9)), 1)


@promise(
    "kv_cache_bytes",
    en="Without further arguments: one example, 16 bits per value.",
    zh="不给其余参数时：一个样本，每个值 16 位。",
)
def test_one_example_in_16_bits_by_default(student, draw):
    shape = sizes(draw, (3, 6), (7, 9), (11, 19), (23, 40))
    matches(student, reference.kv_cache_bytes, *shape)
    matches(student, reference.kv_cache_bytes, *shape, draw.integer(41, 50))


@promise(
    "kv_cache_bytes",
    en="bytes_per_value is obeyed: 1 for 8 bits, 4 for float32.",
    zh="遵从 bytes_per_value：8 位为 1，float32 为 4。",
)
def test_the_width_of_a_value_is_obeyed(student, draw):
    shape = sizes(draw, (10, 16), (5, 9), (33, 40), (101, 160))
    for size in (1, 4, 8):
        matches(student, reference.kv_cache_bytes, *shape, bytes_per_value=size)


@promise(
    "kv_cache_bytes",
    en="One token costs 512 KiB with 32 KV heads (32 layers, width 128) and 128 KiB with 8.",
    zh="32 层、头宽 128：32 个键值头时每个词元 512 KiB，8 个时 128 KiB。",
)
def test_one_token_of_real_models(student, draw):
    for heads in (32, 8, 1):
        matches(student, reference.kv_cache_bytes, 32, heads, 128, 1)
        matches(student, reference.kv_cache_bytes, 32, heads, 128, draw.integer(2000, 9000))


@promise(
    "kv_cache_bytes",
    en="Arguments may be named, and a long context for many users is counted to the last byte.",
    zh="参数可以按名字传递；很多用户的长上下文，也能数到最后一个字节。",
)
def test_a_long_context_for_many(student, draw):
    length, batch = sizes(draw, (100_001, 131_072), (17, 31))
    matches(student, reference.kv_cache_bytes, batch=batch, length=length, head_dim=128, kv_heads=8, layers=80)


@promise(
    "attention_matrix_bytes",
    en="One number for every pair of tokens, in every head and every example, times the bytes of a number.",
    zh="每个样本、每个头、每一对词元一个数，再乘以每个数的字节数。",
    weight=2,
)
def test_every_pair_in_every_head_is_kept(student, draw):
    matches(student, reference.attention_matrix_bytes, *sizes(draw, (5, 9), (11, 16), (23, 40)), 2)
    matches(student, reference.attention_matrix_bytes, *sizes(draw, (17, 30), (6, 9), (301, 340)), 8)


@promise(
    "attention_matrix_bytes",
    en="By default a number is a float32; bytes_per_value is obeyed.",
    zh="默认每个数是 float32；遵从 bytes_per_value。",
)
def test_float32_by_default(student, draw):
    shape = sizes(draw, (5, 8), (11, 16), (50, 90))
    matches(student, reference.attention_matrix_bytes, *shape)
    for size in (1, 2):
        matches(student, reference.attention_matrix_bytes, *shape, bytes_per_value=size)


@promise(
    "attention_matrix_bytes",
    en="Twice the length is four times the memory; twice the heads or the batch is twice.",
    zh="长度加倍，内存变为四倍；头数或批次大小加倍，内存加倍。",
)
def test_only_the_length_is_squared(student, draw):
    batch, heads, length = sizes(draw, (5, 8), (11, 16), (50, 90))
    for more in ((batch, heads, 2 * length), (batch, 2 * heads, length), (2 * batch, heads, length)):
        matches(student, reference.attention_matrix_bytes, *more)


@promise(
    "attention_matrix_bytes",
    en="With 32 examples of 8 heads, 1024 tokens take 1 GiB and 100 000 tokens 9537 GiB: every byte is right.",
    zh="32 个样本、8 个头：1024 个词元占 1 GiB，10 万个词元占 9537 GiB，每个字节都正确。",
)
def test_long_sequences_of_the_notes(student, draw):
    for length in (1024, 4096, 100_000, draw.integer(5000, 9000)):
        matches(student, reference.attention_matrix_bytes, batch=32, heads=8, length=length)
