"""Chapter 5: softmax."""

import torch

from autograder.exam import fits_in, gradients_match, grows_at_most, left_alone, matches, promise
from autograder.exam.sentences import DIM_IS_OBEYED, GRADIENTS_WITH_MINUS_INFINITY, LOW_PRECISION_AND_INPUTS
from autograder.reference import ch05_softmax as reference

INF = torch.inf
LENGTHS = (12, 48, 192)


def huge(draw, dtype=torch.float64):
    """Rows that reach from -1e4 to 1e4, with nearly equal scores near the top, the bottom and the middle."""
    x = draw(4, 5)
    x[0, :2] += 1e4
    x[1] += 1e4
    x[2] -= 1e4
    x[3] += torch.tensor([-1e4, 0.0, 1e4, 0.0, 1e4])
    return x.to(dtype)


def with_holes(draw):
    """Some scores are -inf, and one row is all -inf."""
    x = draw(2, 3, 5).masked_fill(~draw.mask(2, 3, 5), -INF)
    x[1, 1] = -INF
    return x


# stable_softmax


@promise(
    "stable_softmax",
    en="Each score becomes its share of the exponentials: [2.3, 9.1, 0.5] gives about [0.0011, 0.9987, 0.0002].",
    zh="每个分数变成它在指数和中的份额：[2.3, 9.1, 0.5] 约为 [0.0011, 0.9987, 0.0002]。",
)
def test_softmax_shares_out_the_exponentials(student, draw):
    x = torch.tensor([2.3, 9.1, 0.5], dtype=torch.float64)
    matches(student, reference.stable_softmax, x)
    matches(student, reference.stable_softmax, x[draw.permutation(3)] + draw(3, scale=0.1))
    matches(student, reference.stable_softmax, draw(2, 4, 3, 5))


@promise("stable_softmax", DIM_IS_OBEYED)
def test_softmax_runs_along_the_axis_asked_for(student, draw):
    x = draw(2, 3, 5)
    for dim in (0, 1, -2):
        matches(student, reference.stable_softmax, x, dim=dim)


@promise(
    "stable_softmax",
    en="Scores of ±10000 neither overflow nor vanish.",
    zh="分数为 ±10000 时既不上溢，也不整行消失。",
)
def test_softmax_of_huge_scores(student, draw):
    matches(student, reference.stable_softmax, huge(draw))
    matches(student, reference.stable_softmax, huge(draw, torch.float32))


@promise(
    "stable_softmax",
    en="Adding a constant to a row changes nothing, and each row may have its own constant.",
    zh="给一行加上常数，结果不变；每行的常数可以不同。",
)
def test_softmax_does_not_feel_a_shift(student, draw):
    x = draw(3, 5)
    matches(student, reference.stable_softmax, x + 30.0)
    matches(student, reference.stable_softmax, x + torch.tensor([[0.0], [1500.0], [-1500.0]]))


@promise(
    "stable_softmax",
    en="A score of −inf gets weight 0, and a row of −inf gives zeros.",
    zh="分数为 −inf 时权重为 0；整行 −inf 得到一行 0。",
)
def test_softmax_of_minus_infinity(student, draw):
    matches(student, reference.stable_softmax, with_holes(draw))
    matches(student, reference.stable_softmax, with_holes(draw), dim=1)


@promise(
    "stable_softmax",
    en="Gradients are right, also where one score takes all the weight.",
    zh="梯度正确；某个分数独占权重时也正确。",
)
def test_softmax_gradients(student, draw):
    x = draw(2, 3, 5)
    x[0, 1, 2] += 40.0
    gradients_match(student, reference.stable_softmax, x, wrt=(0,), cotangents=(draw(2, 3, 5),))
    gradients_match(student, reference.stable_softmax, huge(draw), wrt=(0,), cotangents=(draw(4, 5),))


@promise("stable_softmax", GRADIENTS_WITH_MINUS_INFINITY)
def test_softmax_gradients_at_minus_infinity(student, draw):
    gradients_match(student, reference.stable_softmax, with_holes(draw), wrt=(0,), cotangents=(draw(2, 3, 5),))


@promise("stable_softmax", LOW_PRECISION_AND_INPUTS)
def test_softmax_in_lower_precision(student, draw):
    left_alone(student, reference.stable_softmax, draw(3, 7, dtype=torch.float32))
    matches(student, reference.stable_softmax, draw(3, 7, dtype=torch.bfloat16))


# logsumexp


@promise(
    "logsumexp",
    en="It is the logarithm of the sum of the exponentials, and the axis is removed.",
    zh="结果是指数和的对数，这个轴被消去。",
)
def test_logsumexp_is_the_log_of_the_sum(student, draw):
    matches(student, reference.logsumexp, torch.tensor([2.3, 9.1, 0.5], dtype=torch.float64))
    matches(student, reference.logsumexp, draw(2, 4, 3, 5))


@promise("logsumexp", DIM_IS_OBEYED)
def test_logsumexp_runs_along_the_axis_asked_for(student, draw):
    x = draw(2, 3, 5)
    for dim in (0, 1, -2):
        matches(student, reference.logsumexp, x, dim=dim)


@promise("logsumexp", en="Scores of ±10000 do not overflow.", zh="分数为 ±10000 时不会溢出。")
def test_logsumexp_of_huge_scores(student, draw):
    matches(student, reference.logsumexp, huge(draw))
    matches(student, reference.logsumexp, huge(draw, torch.float32))


@promise(
    "logsumexp",
    en="Adding c to a row adds c to the result, and each row may have its own c.",
    zh="给一行加上 c，结果也加上 c；每行的 c 可以不同。",
)
def test_logsumexp_moves_with_a_shift(student, draw):
    x = draw(3, 5)
    matches(student, reference.logsumexp, x + 30.0)
    matches(student, reference.logsumexp, x + torch.tensor([[0.0], [1500.0], [-1500.0]]))


@promise(
    "logsumexp",
    en="A score of −inf adds nothing, and a row of −inf gives −inf.",
    zh="−inf 的分数不起作用；整行 −inf 得到 −inf。",
)
def test_logsumexp_of_minus_infinity(student, draw):
    matches(student, reference.logsumexp, with_holes(draw))
    matches(student, reference.logsumexp, with_holes(draw), dim=1)


@promise(
    "logsumexp",
    en="Its gradient is the softmax, also for huge scores.",
    zh="它的梯度就是 softmax，分数很大时也一样。",
)
def test_logsumexp_gradients(student, draw):
    gradients_match(student, reference.logsumexp, draw(2, 3, 5), wrt=(0,), cotangents=(draw(2, 3),))
    gradients_match(student, reference.logsumexp, huge(draw), wrt=(0,), cotangents=(draw(4),))


@promise("logsumexp", GRADIENTS_WITH_MINUS_INFINITY)
def test_logsumexp_gradients_at_minus_infinity(student, draw):
    gradients_match(student, reference.logsumexp, with_holes(draw), wrt=(0,), cotangents=(draw(2, 3),))


@promise("logsumexp", LOW_PRECISION_AND_INPUTS)
def test_logsumexp_in_lower_precision(student, draw):
    left_alone(student, reference.logsumexp, draw(3, 7, dtype=torch.float32))
    matches(student, reference.logsumexp, draw(3, 7, dtype=torch.bfloat16))


# temperature_softmax


@promise(
    "temperature_softmax",
    en="The scores are divided by the temperature before the softmax.",
    zh="分数先除以温度，再做 softmax。",
    weight=2,
)
def test_scores_are_divided_by_the_temperature(student, draw):
    x = draw(2, 3, 5)
    for temperature in (0.4, 1.0, 3.0):
        matches(student, reference.temperature_softmax, x, temperature)


@promise("temperature_softmax", DIM_IS_OBEYED)
def test_temperature_along_the_axis_asked_for(student, draw):
    x = draw(2, 3, 5)
    for dim in (0, 1, -2):
        matches(student, reference.temperature_softmax, x, 0.7, dim=dim)


@promise(
    "temperature_softmax",
    en="A tiny temperature only sharpens and a huge one only flattens: scores of ±10000 do not overflow.",
    zh="温度很小只会更尖，很大只会更平：分数为 ±10000 时也不溢出。",
)
def test_extreme_temperatures(student, draw):
    matches(student, reference.temperature_softmax, huge(draw, torch.float32), 1.0)
    x = draw(3, 5)
    x[0] = x[0] / 1000 + 1.0  # nearly equal scores share the weight even at this low temperature
    matches(student, reference.temperature_softmax, x, 0.001)
    matches(student, reference.temperature_softmax, huge(draw), 5000.0)


@promise(
    "temperature_softmax",
    en="A row of −inf gives zeros; gradients are right and finite.",
    zh="整行 −inf 得到一行 0；梯度正确且有限。",
)
def test_temperature_gradients(student, draw):
    gradients_match(student, reference.temperature_softmax, draw(3, 5), 2.5, wrt=(0,), cotangents=(draw(3, 5),))
    gradients_match(
        student, reference.temperature_softmax, with_holes(draw), 0.6, wrt=(0,), cotangents=(draw(2, 3, 5),)
    )


@promise("temperature_softmax", LOW_PRECISION_AND_INPUTS)
def test_temperature_in_lower_precision(student, draw):
    left_alone(student, reference.temperature_softmax, draw(3, 7, dtype=torch.float32), 0.5)
    matches(student, reference.temperature_softmax, draw(3, 7, dtype=torch.bfloat16), 2.0)


# masked_softmax


@promise(
    "masked_softmax",
    en="The weights are shared out over the allowed scores only (True = allowed).",
    zh="只在允许的分数之间分配权重（True = 允许）。",
    weight=2,
)
def test_only_allowed_scores_share(student, draw):
    matches(student, reference.masked_softmax, draw(2, 3, 5), draw.mask(2, 3, 5))
    matches(student, reference.masked_softmax, draw(7), draw.mask(7))


@promise(
    "masked_softmax",
    en="A row with nothing allowed is all 0.",
    zh="一个都不允许的行全为 0。",
)
def test_a_row_with_nothing_allowed_is_zero(student, draw):
    mask = draw.mask(2, 3, 5)
    mask[1, 0] = False
    matches(student, reference.masked_softmax, draw(2, 3, 5), mask)


@promise(
    "masked_softmax",
    en="A smaller mask broadcasts to the scores.",
    zh="较小的掩码会广播到分数的形状。",
)
def test_a_smaller_mask_broadcasts(student, draw):
    x = draw(4, 2, 3, 5)
    matches(student, reference.masked_softmax, x, draw.mask(4, 1, 1, 5))
    matches(student, reference.masked_softmax, x, draw.mask(3, 5))
    matches(student, reference.masked_softmax, x, torch.tensor([[True], [False], [True]]))


@promise(
    "masked_softmax",
    en="`dim` says along which axis, also with a smaller mask and an empty row.",
    zh="`dim` 指定沿哪个轴；掩码较小、有空行时也一样。",
)
def test_masked_along_the_axis_asked_for(student, draw):
    x, mask, shared = draw(2, 3, 5), draw.mask(2, 3, 5), draw.mask(3, 5)
    mask[0, 1] = shared[1] = False
    mask[1, :, 4] = shared[:, 2] = False
    matches(student, reference.masked_softmax, x, mask, dim=-2)
    matches(student, reference.masked_softmax, x, mask, dim=0)
    matches(student, reference.masked_softmax, x, shared, dim=1)


@promise(
    "masked_softmax",
    en="However large a forbidden score is, it has no effect; allowed scores of ±10000 do not overflow.",
    zh="禁止位置的分数再大也没有影响；允许的分数为 ±10000 时也不溢出。",
)
def test_a_huge_forbidden_score_stays_hidden(student, draw):
    x, mask = draw(3, 5), draw.mask(3, 5)
    matches(student, reference.masked_softmax, x.masked_fill(~mask, 1e4), mask)
    mask = draw.mask(4, 5)
    matches(student, reference.masked_softmax, huge(draw), mask)


@promise(
    "masked_softmax",
    en="Gradients are right: 0 for what is forbidden, finite in an empty row.",
    zh="梯度正确：禁止的位置为 0，空行中也是有限的。",
)
def test_masked_gradients(student, draw):
    mask = draw.mask(2, 3, 5)
    gradients_match(student, reference.masked_softmax, draw(2, 3, 5), mask, wrt=(0,), cotangents=(draw(2, 3, 5),))
    mask[0, 2] = False
    gradients_match(student, reference.masked_softmax, draw(2, 3, 5), mask, wrt=(0,), cotangents=(draw(2, 3, 5),))


@promise("masked_softmax", LOW_PRECISION_AND_INPUTS)
def test_masked_in_lower_precision(student, draw):
    left_alone(student, reference.masked_softmax, draw(3, 7, dtype=torch.float32), draw.mask(3, 7))
    matches(student, reference.masked_softmax, draw(3, 7, dtype=torch.bfloat16), draw.mask(3, 7))


# softmax_vjp


def backward_of(draw, *shape, dtype=torch.float64):
    """Weights, and the gradient that arrives at them."""
    return torch.softmax(draw(*shape), -1).to(dtype), draw(*shape, dtype=dtype)


@promise(
    "softmax_vjp",
    en="It sends the gradient back through the softmax, row by row along the last axis.",
    zh="把梯度沿最后一个轴逐行传回 softmax 之前。",
    weight=2,
)
def test_the_gradient_goes_back_through_the_softmax(student, draw):
    matches(student, reference.softmax_vjp, *backward_of(draw, 13))
    matches(student, reference.softmax_vjp, *backward_of(draw, 2, 4, 3, 5))
    matches(student, reference.softmax_vjp, *backward_of(draw, 5, 5))


@promise(
    "softmax_vjp",
    en="Weights of exactly 0 and 1, and whole rows of 0, give finite gradients.",
    zh="权重恰好为 0 或 1，甚至整行为 0 时，梯度都有限且正确。",
)
def test_saturated_and_empty_rows_go_back(student, draw):
    p, grad = backward_of(draw, 4, 5)
    p[1] = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0])
    p[2] = 0.0
    matches(student, reference.softmax_vjp, p, grad)


@promise(
    "softmax_vjp",
    en="Memory grows as n: the n × n Jacobian is never stored.",
    zh="内存按 n 增长：从不存下 n × n 的雅可比矩阵。",
    weight=2,
)
def test_no_jacobian_is_stored(student, draw):
    matches(student, reference.softmax_vjp, *backward_of(draw, 3, LENGTHS[0]))
    grows_at_most(student, "softmax_vjp", lambda n: backward_of(draw, 3, n), lengths=LENGTHS, power=1.0, what="largest")


@promise(
    "softmax_vjp",
    en="Work grows as n: the Jacobian is neither computed piece by piece nor made outside PyTorch.",
    zh="计算量按 n 增长：不能把雅可比矩阵分块算一遍，也不能在 PyTorch 之外偷偷算出来。",
    weight=2,
)
def test_no_jacobian_in_pieces(student, draw):
    matches(student, reference.softmax_vjp, *backward_of(draw, 3, LENGTHS[0]))
    grows_at_most(
        student, "softmax_vjp", lambda n: backward_of(draw, 3, n), lengths=LENGTHS, power=1.0, what="elements"
    )
    grows_at_most(student, "softmax_vjp", lambda n: backward_of(draw, 3, n), lengths=LENGTHS, power=1.0, what="flops")
    fits_in(student, "softmax_vjp", *backward_of(draw, 3000), megabytes=24)  # the Jacobian would take 69 MB


@promise("softmax_vjp", LOW_PRECISION_AND_INPUTS)
def test_backward_in_lower_precision(student, draw):
    left_alone(student, reference.softmax_vjp, *backward_of(draw, 3, 7, dtype=torch.float32))
    matches(student, reference.softmax_vjp, *backward_of(draw, 3, 7, dtype=torch.bfloat16))
