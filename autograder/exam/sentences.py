"""Sentences that several promises share, each written once in both languages.

A suite gives one of them instead of `en` and `zh`: `@promise("masked_attention", INPUTS_STAY)`. A sentence of a single
promise stays beside its test. `tests/test_sentences.py` finds a sentence that is written out twice.
"""

from autograder.language import Text

# Inputs

INPUTS_STAY = Text(
    "The inputs stay as they were, and asking twice gives the same.",
    "不改动输入，问两次答案相同。",
)
INPUTS_STAY_IN_TRAINING_TOO = Text(
    "The inputs stay as they were, and asking twice gives the same, training or not.",
    "不改动输入；无论是否处于训练模式，问两次答案相同。",
)

# Shapes

ANY_LEADING_AXES = Text(
    "Any number of leading axes works, including none.",
    "前面有几个批次轴都可以，没有也行。",
)
DIM_IS_OBEYED = Text("`dim` says along which axis.", "`dim` 指定沿哪个轴。")
ANY_LENGTH = Text("Lengths need not be multiples of the block.", "长度不必是块的整数倍。")

# Precision

DTYPE_STAYS = Text("The dtype stays the same.", "dtype 保持不变。")
DTYPE_IN_IS_DTYPE_OUT = Text(
    "float32 in, float32 out; bfloat16 in, bfloat16 out.",
    "输入 float32，输出 float32；输入 bfloat16，输出 bfloat16。",
)
FLOAT32 = Text("Works in float32 too.", "在 float32 下也正确。")
FLOAT32_AND_BFLOAT16 = Text("Works in float32 and in bfloat16.", "在 float32 和 bfloat16 下都正确。")
FLOAT32_AND_16_BITS = Text("Works in float32 and in 16 bits.", "在 float32 和 16 位下都正确。")

# Precision together with inputs and shapes

LOW_PRECISION_AND_INPUTS = Text(
    "Works in float32 and bfloat16, and leaves its inputs alone.",
    "在 float32 和 bfloat16 下都正确，并且不改动输入。",
)
LOW_PRECISION_AXES_AND_INPUTS = Text(
    "Works with any leading axes, in float32 and bfloat16; the inputs stay as they were.",
    "任意个批次轴，float32 和 bfloat16 都正确；输入保持原样。",
)
LOW_PRECISION_LENGTHS_AXES_AND_INPUTS = Text(
    "Any length and any number of leading axes works, in float32 and bfloat16 too; the inputs are left alone.",
    "任何长度、任意个批次轴都可以，在 float32 和 bfloat16 下也正确；输入不被改动。",
)

# Masks

SHARED_MASK_BROADCASTS = Text(
    "A mask that is shared by heads or queries broadcasts.",
    "各头或各查询共用的掩码能正确广播。",
)
FORBIDDEN_SCORE_HAS_NO_EFFECT = Text(
    "However large a forbidden score is, it has no effect.",
    "禁止位置的分数再大，也没有任何影响。",
)
BLIND_QUERY_GETS_ZEROS = Text(
    "A query that may look nowhere gets weights 0 and output 0.",
    "哪里都不许看的查询，权重为 0，输出为 0。",
)
BLIND_QUERY_GETS_THE_BIAS = Text(
    "A query that may look nowhere has head outputs 0: out_proj turns them into its bias, not into NaN.",
    "哪里都不许看的查询，各头输出为 0：经过 out_proj 得到它的偏置，而不是 NaN。",
)
CAUSAL_MIXES_THE_PAST = Text(
    "With `causal=True` query i mixes the values 0 … i, itself included.",
    "`causal=True` 时，查询 i 只混合值 0 … i，包括自己。",
)
MEMORY_HAS_NO_ORDER = Text("The order of the memory does not matter.", "memory 里词元的顺序无关紧要。")

# Gradients

GRADIENTS = Text("Gradients are right.", "梯度正确。")
GRADIENTS_AND_FLOAT32 = Text(
    "Gradients are right, and float32 works too.",
    "梯度数值正确，float32 同样可用。",
)
GRADIENTS_WITH_BLIND_QUERIES = Text(
    "Gradients are right, and finite for queries that may look nowhere.",
    "梯度正确；哪里都不许看的查询，梯度也是有限的。",
)
GRADIENTS_OF_ALL_LAYERS = Text(
    "Gradients of the inputs and of all layers are right, and finite for queries that may look nowhere.",
    "输入和各层的梯度都正确；哪里都不许看的查询，梯度也是有限的。",
)
GRADIENTS_WITH_MINUS_INFINITY = Text(
    "Gradients are finite for −inf too: no NaN.",
    "遇到 −inf，梯度仍然有限，没有 NaN。",
)

# Dropout

NO_DROPOUT_OUTSIDE_TRAINING = Text(
    "Outside training nothing is dropped, whatever p is.",
    "不训练时，无论 p 是多少都不丢弃。",
)
DROPOUT_ACTS_ON_WEIGHTS = Text(
    "Weights are dropped, not outputs: a mix of many values loses some of them and never all.",
    "丢弃的是权重，不是输出：混合许多值时只会丢掉一部分，不会全丢。",
)

# Layers and arguments

NO_BIAS_ANYWHERE = Text("With bias=False no layer has a bias.", "bias=False 时，各层都没有偏置。")
UNKNOWN_KIND_IS_REFUSED = Text("An unknown kind raises ValueError.", "未知的 kind 抛出 ValueError。")
HEADS_MUST_DIVIDE_THE_WIDTH = Text(
    "Heads that do not divide the width raise ValueError.",
    "头数不能整除宽度时抛出 ValueError。",
)
KV_HEADS_MUST_DIVIDE_THE_HEADS = Text(
    "KV heads that do not divide the query heads raise ValueError.",
    "键值头数不能整除查询头数时，抛出 ValueError。",
)

# Cost

NO_SQUARE_TENSOR_BACKWARD = Text(
    "The backward pass makes no n × n tensor either.",
    "反向传播也不产生 n × n 的张量。",
)
HIDDEN_TILES_ARE_SKIPPED = Text(
    "With `causal`, tiles in which no query may look at any key are not computed.",
    "`causal` 时，任何查询都不许看的块不参与计算。",
)
