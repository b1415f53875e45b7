"""Chapter 15: linear attention."""

import torch

from autograder.exam import fits_in, gradients_match, grows_at_most, growth, left_alone, matches, promise, require
from autograder.exam.sentences import (
    CAUSAL_MIXES_THE_PAST,
    GRADIENTS,
    LOW_PRECISION_LENGTHS_AXES_AND_INPUTS,
    NO_SQUARE_TENSOR_BACKWARD,
)
from autograder.reference import ch15_linear as reference

LENGTHS = (512, 1024)  # an answer that works in chunks of up to 512 grows as n here
SHORT = (32, 64, 96)  # an answer without chunks grows as n already here, and then the long lengths are not measured
STEPS = (48, 144)  # a loop over steps has no chunks, and with narrow q, k and v a table is soon the largest tensor
FEW = (16, 32, 48)  # for a loop over steps, as SHORT is for LENGTHS
ENOUGH = 12  # megabytes at n = 1536; a table would take 19
COUNTS = ("largest", "live", "flops", "elements", "left")


def drawn(draw, *lead, n=11, keys=None, d=4, e=6, dtype=torch.float64):
    """q, k, v with pairwise distinct sizes; without `keys` there are as many keys as queries."""
    keys = keys or n
    return draw(*lead, n, d, dtype=dtype), draw(*lead, keys, d, dtype=dtype), draw(*lead, keys, e, dtype=dtype)


def featured(draw, *lead, r=9, d=16, dtype=torch.float64, **sizes):
    """q, k, v and W; the fourth root of d is a whole number, because some people compute it in float32."""
    return (*drawn(draw, *lead, d=d, dtype=dtype, **sizes), draw(r, d, dtype=dtype))


def is_linear(student, name, inputs, *rest, lengths=LENGTHS, sooner=SHORT, what=COUNTS, **asked):
    """The counts of `name(*inputs(n), *rest)` grow as n."""
    asked |= {"lengths": lengths, "sooner": sooner, "power": 1.0, "what": what}
    grows_at_most(student, name, lambda n: (*inputs(n), *rest), **asked)


@promise(
    "linear_attention",
    en="Each query gets the mean of the values, weighted by φ(q)·φ(k) with φ = elu + 1.",
    zh="每个查询得到值的加权平均，权重为 φ(q)·φ(k)，φ = elu + 1。",
    weight=2,
)
def test_the_values_are_mixed_by_the_kernel(student, draw):
    matches(student, reference.linear_attention, *drawn(draw, 2, 3, n=7, keys=11))
    matches(student, reference.linear_attention, *drawn(draw, 3, n=9, keys=5))


@promise("linear_attention", CAUSAL_MIXES_THE_PAST, weight=2)
def test_causal_linear_attention(student, draw):
    matches(student, reference.linear_attention, *drawn(draw, 2, 3), True)
    matches(student, reference.linear_attention, *drawn(draw, 2, n=7), causal=True)


@promise(
    "linear_attention",
    en="The weights sum to 1, without an epsilon: equal values come back as they are.",
    zh="权重之和为 1，不加 eps：值全都相同时，原样返回。",
)
def test_the_weights_sum_to_one(student, draw):
    q, k, _ = drawn(draw, 2)
    for causal in (False, True):
        matches(student, reference.linear_attention, q - 2, k - 2, draw(2, 1, 6).expand(2, 11, 6).clone(), causal)


@promise("linear_attention", LOW_PRECISION_LENGTHS_AXES_AND_INPUTS)
def test_linear_attention_of_any_shape(student, draw):
    left_alone(student, reference.linear_attention, *drawn(draw, 3, dtype=torch.float32))
    left_alone(student, reference.linear_attention, *drawn(draw, 3, dtype=torch.float32), True)
    matches(student, reference.linear_attention, *drawn(draw, 3, n=7, dtype=torch.bfloat16))
    for causal in (False, True):
        matches(student, reference.linear_attention, *drawn(draw), causal)
        matches(student, reference.linear_attention, *drawn(draw, 2, 5, 3, n=7), causal)
        for n in (1, 8, 19):
            matches(student, reference.linear_attention, *drawn(draw, 2, n=n), causal)


@promise("linear_attention", GRADIENTS)
def test_linear_attention_gradients(student, draw):
    for causal in (False, True):
        inputs, weight = drawn(draw, 2), (draw(2, 11, 6),)
        gradients_match(student, reference.linear_attention, *inputs, causal, wrt=(0, 1, 2), cotangents=weight)


@promise(
    "linear_attention",
    en="Memory grows as n: no n × n table, whole or in pieces.",
    zh="内存按 n 增长：没有 n × n 的表，整张的没有，拆开的也没有。",
    weight=2,
)
def test_linear_attention_takes_little_memory(student, draw):
    matches(student, reference.linear_attention, *drawn(draw, n=13))
    is_linear(student, "linear_attention", lambda n: drawn(draw, n=n), False, what=("largest", "live"))
    fits_in(student, "linear_attention", *drawn(draw, n=1536), False, megabytes=ENOUGH, tensors=False)


@promise(
    "linear_attention",
    en="Work grows as n: no query meets every key.",
    zh="计算量按 n 增长：没有哪个查询要与每个键相遇。",
)
def test_linear_attention_takes_little_work(student, draw):
    matches(student, reference.linear_attention, *drawn(draw, n=13))
    is_linear(student, "linear_attention", lambda n: drawn(draw, n=n), False, what=("flops", "elements", "left"))


@promise(
    "linear_attention",
    en="With `causal=True` too, memory and work grow as n.",
    zh="因果的情形下，内存和计算量同样按 n 增长。",
    weight=2,
)
def test_causal_linear_attention_costs_n(student, draw):
    matches(student, reference.linear_attention, *drawn(draw, n=13), True)
    is_linear(student, "linear_attention", lambda n: drawn(draw, n=n), True)
    fits_in(student, "linear_attention", *drawn(draw, n=1536), True, megabytes=ENOUGH, tensors=False)


@promise("linear_attention", NO_SQUARE_TENSOR_BACKWARD)
def test_linear_attention_costs_n_backward(student, draw):
    for causal in (False, True):
        matches(student, reference.linear_attention, *drawn(draw, n=13), causal)
        asked = {"what": ("largest", "live"), "wrt": (0, 1, 2), "cotangents": lambda n: (draw(n, 6),)}
        is_linear(student, "linear_attention", lambda n: drawn(draw, n=n), causal, **asked)


@promise(
    "linear_attention_recurrent",
    en="Step by step it gives what causal linear attention gives.",
    zh="一步一步算出的结果，与因果线性注意力相同。",
    weight=2,
)
def test_the_recurrence_is_causal_linear_attention(student, draw):
    matches(student, reference.linear_attention_recurrent, *drawn(draw, 2, 3))
    matches(student, reference.linear_attention_recurrent, *drawn(draw, 2, n=7))


@promise("linear_attention_recurrent", LOW_PRECISION_LENGTHS_AXES_AND_INPUTS)
def test_a_recurrence_of_any_shape(student, draw):
    left_alone(student, reference.linear_attention_recurrent, *drawn(draw, 3, dtype=torch.float32))
    matches(student, reference.linear_attention_recurrent, *drawn(draw, 3, n=7, dtype=torch.bfloat16))
    matches(student, reference.linear_attention_recurrent, *drawn(draw))
    matches(student, reference.linear_attention_recurrent, *drawn(draw, 2, 5, 3, n=7))
    matches(student, reference.linear_attention_recurrent, *drawn(draw, 2, n=1))


@promise("linear_attention_recurrent", GRADIENTS)
def test_recurrence_gradients(student, draw):
    inputs, weight = drawn(draw, 2), (draw(2, 11, 6),)
    gradients_match(student, reference.linear_attention_recurrent, *inputs, wrt=(0, 1, 2), cotangents=weight)


@promise(
    "linear_attention_recurrent",
    en="Every step costs the same: memory and work grow as n, backward without an n × n tensor.",
    zh="每一步的花费相同：内存和计算量按 n 增长，反向传播也没有 n × n 的张量。",
    weight=2,
)
def test_every_step_costs_the_same(student, draw):
    name = "linear_attention_recurrent"
    matches(student, reference.linear_attention_recurrent, *drawn(draw, n=13))
    is_linear(student, name, lambda n: drawn(draw, n=n, d=2, e=3), lengths=STEPS, sooner=FEW)
    asked = {"what": ("largest", "live"), "wrt": (0, 1, 2), "cotangents": lambda n: (draw(n, 3),)}
    is_linear(student, name, lambda n: drawn(draw, n=n, d=2, e=3), lengths=STEPS, sooner=FEW, **asked)


@promise(
    "linear_attention_recurrent",
    en="One state is carried along: a d × e state is not kept for every step.",
    zh="只带着一个状态往前走：不为每一步都留一个 d × e 的状态。",
    weight=2,
)
def test_one_state_is_carried_along(student, draw):
    name = "linear_attention_recurrent"
    matches(student, reference.linear_attention_recurrent, *drawn(draw, n=13))
    widths = {d: student.measure(name, *drawn(draw, n=120, d=d, e=d))["live"] for d in (6, 18)}
    power = growth(widths)
    require(
        power <= 1.5,
        f"{name}: the memory held at once grows as d^{power:.1f}; with one state, instead of one for each step, it is d^1",
        f"{name}：同时占用的内存按 d^{power:.1f} 增长；只留一个状态而不是每步一个，应为 d^1",
    )


@promise(
    "favor_features",
    en="The features are exp(Wx − |x|²/2)/√r.",
    zh="特征是 exp(Wx − |x|²/2)/√r。",
    weight=2,
)
def test_the_features_are_positive_and_random(student, draw):
    matches(student, reference.favor_features, draw(2, 3, 11, 4), draw(9, 4))
    matches(student, reference.favor_features, draw(5, 7), draw(16, 7))


@promise(
    "favor_features",
    en="Long and short vectors both work: each is treated by its own norm.",
    zh="长的和短的向量都正确：各按自己的模长计算。",
)
def test_vectors_of_many_lengths(student, draw):
    x = draw(2, 11, 4) * torch.linspace(0.1, 3, 11, dtype=torch.float64)[:, None]
    matches(student, reference.favor_features, x, draw(9, 4))
    matches(student, reference.favor_features, torch.zeros(3, 4, dtype=torch.float64), draw(9, 4))


@promise("favor_features", GRADIENTS)
def test_feature_gradients(student, draw):
    inputs, weight = (draw(2, 11, 4), draw(9, 4)), (draw(2, 11, 9),)
    gradients_match(student, reference.favor_features, *inputs, wrt=(0, 1), cotangents=weight)


@promise(
    "favor_features",
    en="Works in float32 and bfloat16 and with any leading axes, leaves its inputs alone, and costs n.",
    zh="在 float32 和 bfloat16 下、有任意个批次轴时都正确，不改动输入，花费按 n 增长。",
)
def test_features_of_any_shape(student, draw):
    left_alone(student, reference.favor_features, draw(3, 11, 4, dtype=torch.float32), draw(9, 4, dtype=torch.float32))
    matches(student, reference.favor_features, draw(11, 4, dtype=torch.bfloat16), draw(9, 4, dtype=torch.bfloat16))
    matches(student, reference.favor_features, draw(2, 3, 5, 7, 4), draw(9, 4))
    is_linear(student, "favor_features", lambda n: (draw(n, 4), draw(9, 4)))


@promise(
    "performer",
    en="Queries and keys, each divided by d^(1/4), get the same features; the values are mixed by them and normalised.",
    zh="查询和键各除以 d^(1/4)，用同一组特征；按它们混合各个值，并归一化。",
    weight=2,
)
def test_performer_mixes_by_features(student, draw):
    matches(student, reference.performer, *featured(draw, 2, 3, n=7, keys=11))
    matches(student, reference.performer, *featured(draw, 3, n=10, keys=5))


@promise("performer", CAUSAL_MIXES_THE_PAST, weight=2)
def test_causal_performer(student, draw):
    matches(student, reference.performer, *featured(draw, 2, 3), True)
    matches(student, reference.performer, *featured(draw, 2, n=7), causal=True)


@promise(
    "performer",
    en="The weights sum to 1 even where the features are small.",
    zh="即使特征很小，权重之和也是 1。",
)
def test_performers_weights_sum_to_one(student, draw):
    q, k, _, W = featured(draw, 2)
    for causal in (False, True):
        matches(student, reference.performer, 3 * q, 3 * k, draw(2, 1, 6).expand(2, 11, 6).clone(), W, causal)


@promise("performer", GRADIENTS)
def test_performer_gradients(student, draw):
    for causal in (False, True):
        inputs, weight = featured(draw, 2), (draw(2, 11, 6),)
        gradients_match(student, reference.performer, *inputs, causal, wrt=(0, 1, 2), cotangents=weight)


@promise(
    "performer",
    en="Any width, length and number of leading axes works, in float32 too; the inputs are left alone.",
    zh="任何宽度、长度，任意个批次轴都可以，在 float32 下也正确；输入不被改动。",
)
def test_performer_of_any_shape(student, draw):
    left_alone(student, reference.performer, *featured(draw, 3, d=5, dtype=torch.float32))
    for causal in (False, True):
        matches(student, reference.performer, *featured(draw), causal)
        matches(student, reference.performer, *featured(draw, 2, 5, 3, n=7), causal)
        matches(student, reference.performer, *featured(draw, 2, n=1), causal)


@promise(
    "performer",
    en="Memory and work grow as n, causal or not.",
    zh="无论是否因果，内存和计算量都按 n 增长。",
    weight=2,
)
def test_performer_costs_n(student, draw):
    for causal in (False, True):
        matches(student, reference.performer, *featured(draw, n=13), causal)
        is_linear(student, "performer", lambda n: featured(draw, n=n), causal)


@promise("performer", NO_SQUARE_TENSOR_BACKWARD)
def test_performer_costs_n_backward(student, draw):
    for causal in (False, True):
        matches(student, reference.performer, *featured(draw, n=13), causal)
        asked = {"what": ("largest", "live"), "wrt": (0, 1, 2), "cotangents": lambda n: (draw(n, 6),)}
        is_linear(student, "performer", lambda n: featured(draw, n=n), causal, **asked)


def shortened(draw, *lead, n=7, keys=11, r=5, dtype=torch.float64):
    """q, k, v, E, F: r mixtures of the keys."""
    return (*drawn(draw, *lead, n=n, keys=keys, dtype=dtype), draw(r, keys, dtype=dtype), draw(r, keys, dtype=dtype))


@promise(
    "linformer",
    en="E shortens the keys and F the values, along the length, before the scores are made.",
    zh="在算分数之前，E 沿长度方向压缩键，F 沿长度方向压缩值。",
    weight=3,
)
def test_keys_and_values_are_shortened(student, draw):
    matches(student, reference.linformer, *shortened(draw, 2, 3))
    matches(student, reference.linformer, *shortened(draw, 3, n=12, keys=8, r=1))


@promise("linformer", en="Gradients are right, those of E and F too.", zh="梯度正确，包括对 E 和 F 的梯度。")
def test_linformer_gradients(student, draw):
    inputs, weight = shortened(draw, 2), (draw(2, 7, 6),)
    gradients_match(student, reference.linformer, *inputs, wrt=(0, 1, 2, 3, 4), cotangents=weight)


@promise(
    "linformer",
    en="Any number of leading axes works, in float32 and bfloat16 too; the inputs are left alone.",
    zh="任意个批次轴都可以，在 float32 和 bfloat16 下也正确；输入不被改动。",
)
def test_linformer_of_any_shape(student, draw):
    left_alone(student, reference.linformer, *shortened(draw, 3, dtype=torch.float32))
    matches(student, reference.linformer, *shortened(draw, 3, dtype=torch.bfloat16))
    matches(student, reference.linformer, *shortened(draw))
    matches(student, reference.linformer, *shortened(draw, 2, 9, 3))


@promise(
    "linformer",
    en="Memory and work grow as n, and the backward pass makes no n × n tensor.",
    zh="内存和计算量按 n 增长，反向传播也不产生 n × n 的张量。",
    weight=2,
)
def test_linformer_costs_n(student, draw):
    matches(student, reference.linformer, *shortened(draw, n=13, keys=12))
    is_linear(student, "linformer", lambda n: shortened(draw, n=n, keys=n))
    asked = {"what": ("largest", "live"), "wrt": (0, 1, 2), "cotangents": lambda n: (draw(n, 6),)}
    is_linear(student, "linformer", lambda n: shortened(draw, n=n, keys=n), **asked)
