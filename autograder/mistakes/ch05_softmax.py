"""Chapter 5: softmaxes that overflow, divide by nothing, or look along the wrong axis."""

import torch

from autograder.reference import ch05_softmax as right

from . import mistake


def _share(x, dim, shift=0.0):
    """The plain formula, unprotected: what most mistakes below are built on."""
    exps = (x - shift).exp()
    return exps / exps.sum(dim, keepdim=True)


def _hollow(x, dim):
    """True for each row of -inf."""
    return (x == -torch.inf).all(dim, keepdim=True)


# stable_softmax


@mistake(
    "stable_softmax",
    en="The maximum is not subtracted: exp overflows above 709 in float64 (88 in float32), and inf/inf is NaN. "
    "Subtract each row's largest score first.",
    zh="没有减去最大值：float64 超过 709（float32 超过 88）时 exp 上溢，inf/inf 得到 NaN。应先减去每行的最大分数。",
)
def forgets_the_max(x, dim=-1):
    return _share(x, dim).masked_fill(_hollow(x, dim), 0.0)


@mistake(
    "stable_softmax",
    en="One maximum is subtracted from all rows. A row far below it underflows to 0/0: take the maximum of each row.",
    zh="所有行都减去同一个全局最大值。远低于它的行会下溢成 0/0：应取每一行自己的最大值。",
)
def takes_one_max_for_all_rows(x, dim=-1):
    return _share(x, dim, x.max()).masked_fill(_hollow(x, dim), 0.0)


@mistake(
    "stable_softmax",
    en="The maximum is taken along another axis than the sum, so the scores of one row are shifted by different amounts. "
    "Use the same `dim` in both places, with keepdim=True.",
    zh="取最大值的轴和求和的轴不一样，同一行的分数被减去了不同的数。两处要用同一个 `dim`，并加上 keepdim=True。",
)
def takes_the_max_along_another_axis(x, dim=-1):
    other = 0 if dim % x.dim() == x.dim() - 1 else -1
    peak = x.amax(other, keepdim=True)
    return _share(x, dim, peak.masked_fill(peak == -torch.inf, 0.0)).masked_fill(_hollow(x, dim), 0.0)


@mistake(
    "stable_softmax",
    en="The mean is subtracted instead of the maximum: a score far above the mean still overflows.",
    zh="减去的是平均值而不是最大值：比平均值大很多的分数照样上溢。",
)
def subtracts_the_mean(x, dim=-1):
    mean = x.mean(dim, keepdim=True)
    return _share(x, dim, mean.masked_fill(mean == -torch.inf, 0.0)).masked_fill(_hollow(x, dim), 0.0)


@mistake(
    "stable_softmax",
    en="The scores are clipped so that exp cannot overflow. That changes the answer: subtract the row's maximum instead.",
    zh="为了不让 exp 上溢而截断了分数，答案也就变了。应改为减去这一行的最大值。",
)
def clips_the_scores(x, dim=-1):
    return _share(x.clamp(-50.0, 50.0), dim).masked_fill(_hollow(x, dim), 0.0)


@mistake(
    "stable_softmax",
    en="A small epsilon is added to the denominator. After subtracting the maximum the sum is at least 1: it needs no "
    "epsilon, and the rows no longer sum to 1.",
    zh="分母里加了一个很小的 epsilon。减去最大值后，和至少是 1，不需要 epsilon；加了它，每行的和就不再是 1。",
)
def adds_an_epsilon(x, dim=-1):
    peak = x.detach().amax(dim, keepdim=True)
    exps = (x - peak.masked_fill(peak == -torch.inf, 0.0)).exp()
    return exps / (exps.sum(dim, keepdim=True) + 1e-9)


@mistake(
    "stable_softmax",
    en="A row of −inf gives NaN: its maximum is −inf, and −inf − (−inf) is NaN. Shift such a row by 0 and divide by 1.",
    zh="整行 −inf 得到 NaN：最大值是 −inf，而 −inf − (−inf) 是 NaN。这样的行应减 0、除以 1。",
)
def gives_nan_for_a_row_of_minus_infinity(x, dim=-1):
    return _share(x, dim, x.amax(dim, keepdim=True))


@mistake(
    "stable_softmax",
    en="A row of −inf gets equal weights. Nothing in it may be chosen: its weights are 0.",
    zh="整行 −inf 得到了均等的权重。这一行没有可选的，权重应为 0。",
)
def spreads_a_row_of_minus_infinity_evenly(x, dim=-1):
    x = x.masked_fill(x == -torch.inf, -1e9)
    return _share(x, dim, x.amax(dim, keepdim=True))


@mistake(
    "stable_softmax",
    en="The NaN of a row of −inf is wiped away only at the end: the weights are 0, but their gradient is still NaN. "
    "Avoid the NaN instead: shift such a row by 0 and divide by 1.",
    zh="整行 −inf 的 NaN 只在最后才抹去：权重是 0，梯度却仍是 NaN。应从一开始就避免 NaN：这样的行减 0、除以 1。",
)
def wipes_nan_from_the_weights_only(x, dim=-1):
    return _share(x, dim, x.amax(dim, keepdim=True)).nan_to_num(0.0)


@mistake(
    "stable_softmax",
    en="−inf is replaced by 0. A score of 0 is an ordinary score, e⁰ = 1: −inf must get weight 0.",
    zh="把 −inf 换成了 0。0 只是普通分数，e⁰ = 1：−inf 的权重必须是 0。",
)
def reads_minus_infinity_as_zero(x, dim=-1):
    return right.stable_softmax(x.masked_fill(x == -torch.inf, 0.0), dim)


@mistake(
    "stable_softmax",
    en="`dim` is ignored: the softmax always runs along the last axis.",
    zh="忽略了 `dim`：softmax 总是沿最后一个轴。",
)
def ignores_the_axis(x, dim=-1):
    return right.stable_softmax(x)


@mistake(
    "stable_softmax",
    en="The sum runs over the whole tensor. Each row must sum to 1 on its own: sum along `dim` with keepdim=True.",
    zh="对整个张量求了和。每一行的和各自为 1：应沿 `dim` 求和，并加上 keepdim=True。",
)
def sums_over_everything(x, dim=-1):
    return right.stable_softmax(x.flatten(), 0).view_as(x)


@mistake(
    "stable_softmax",
    en="The exponentials are not divided by their sum: the row does not sum to 1.",
    zh="指数没有除以它们的和：一行的和不是 1。",
)
def forgets_to_divide(x, dim=-1):
    peak = x.detach().amax(dim, keepdim=True)
    return (x - peak.masked_fill(peak == -torch.inf, 0.0)).exp()


@mistake(
    "stable_softmax",
    en="The weights are no longer connected to the scores (detach, no_grad or .data): no gradient flows.",
    zh="权重和分数断开了（detach、no_grad 或 .data）：梯度传不回去。",
)
def cuts_the_gradient(x, dim=-1):
    return right.stable_softmax(x.detach(), dim)


@mistake(
    "stable_softmax",
    en="The input is changed in place (x -= …). Write x = x - … to make a new tensor.",
    zh="原地修改了输入（x -= …）。请写成 x = x - …，得到新的张量。",
)
def changes_the_input(x, dim=-1):
    peak = x.detach().amax(dim, keepdim=True)
    x -= peak.masked_fill(peak == -torch.inf, 0.0)
    return right.stable_softmax(x, dim)


@mistake(
    "stable_softmax",
    en="The weights are always float32. Return the dtype of the input.",
    zh="权重总是 float32。应返回与输入相同的 dtype。",
)
def always_returns_float32(x, dim=-1):
    return right.stable_softmax(x.float(), dim)


# logsumexp


def _log_of_sum(x, dim, shift=0.0):
    return (x - shift).exp().sum(dim).log()


@mistake(
    "logsumexp",
    en="The maximum is not taken out: exp overflows for large scores and the logarithm of 0 is −inf for very negative ones. "
    "Use max + log Σ exp(x − max).",
    zh="没有提出最大值：分数很大时 exp 上溢，很负时变成 log 0 = −inf。应写成 max + log Σ exp(x − max)。",
)
def takes_the_log_of_the_plain_sum(x, dim=-1):
    return _log_of_sum(x, dim)


@mistake(
    "logsumexp",
    en="The maximum was subtracted and never added back.",
    zh="减去了最大值，却没有加回来。",
)
def forgets_to_add_the_max_back(x, dim=-1):
    peak = right._peak(x, dim)
    return right.logsumexp(x, dim) - peak.squeeze(dim)


@mistake(
    "logsumexp",
    en="The maximum itself is returned: the other scores count too.",
    zh="直接返回了最大值：其他分数也要算进去。",
)
def returns_the_max(x, dim=-1):
    return x.amax(dim)


@mistake(
    "logsumexp",
    en="The axis is still there with length 1. It must be removed: squeeze it, or sum without keepdim.",
    zh="这个轴还在，长度为 1。它应当被消去：用 squeeze，或求和时不要 keepdim。",
)
def keeps_the_axis(x, dim=-1):
    return right.logsumexp(x, dim).unsqueeze(dim)


@mistake(
    "logsumexp",
    en="It is computed as x − log softmax(x). Where a weight underflows to 0 its logarithm is −inf: "
    "use max + log Σ exp(x − max).",
    zh="用 x − log softmax(x) 来算。权重下溢成 0 时，对数是 −inf。应写成 max + log Σ exp(x − max)。",
)
def takes_the_log_of_the_softmax(x, dim=-1):
    return (x - right.stable_softmax(x, dim).log()).select(dim, 0)


@mistake(
    "logsumexp",
    en="The exponentials are averaged instead of summed.",
    zh="对指数取了平均，而不是求和。",
)
def averages_the_exponentials(x, dim=-1):
    return right.logsumexp(x, dim) - torch.tensor(x.shape[dim], dtype=x.dtype).log()


@mistake(
    "logsumexp",
    en="An epsilon is added inside the logarithm. It is never needed for a row with a finite score, and it turns the −inf "
    "of an empty row into a number.",
    zh="在对数里加了 epsilon。只要一行有有限的分数就用不着它；而它会把空行的 −inf 变成一个普通的数。",
)
def adds_an_epsilon_inside_the_log(x, dim=-1):
    peak = right._peak(x, dim)
    return ((x - peak).exp().sum(dim) + 1e-9).log() + peak.squeeze(dim)


@mistake(
    "logsumexp",
    en="A row of −inf gives NaN: −inf − (−inf) is NaN. Shift such a row by 0; its result is −inf.",
    zh="整行 −inf 得到 NaN：−inf − (−inf) 是 NaN。这样的行应减 0，结果是 −inf。",
)
def gives_nan_for_an_empty_log(x, dim=-1):
    peak = x.amax(dim, keepdim=True)
    return _log_of_sum(x, dim, peak) + peak.squeeze(dim)


@mistake(
    "logsumexp",
    en="A row of −inf gives 0. The sum of nothing is 0 and its logarithm is −inf.",
    zh="整行 −inf 得到 0。没有任何项时和是 0，对数应为 −inf。",
)
def gives_zero_for_an_empty_log(x, dim=-1):
    return right.logsumexp(x, dim).nan_to_num(neginf=0.0)


@mistake(
    "logsumexp",
    en="For a row of −inf the value is right, but the gradient is NaN: the slope of log at 0 is inf, and inf × 0 is NaN. "
    "Put 1 in place of the sum before the log, and −inf in place of the result after it.",
    zh="整行 −inf 时，值是对的，梯度却是 NaN：log 在 0 处的斜率是 inf，inf × 0 得到 NaN。"
    "应在取对数之前把和换成 1，取对数之后再把结果换成 −inf。",
)
def takes_the_log_of_zero(x, dim=-1):
    peak = right._peak(x, dim)
    return _log_of_sum(x, dim, peak) + peak.squeeze(dim)


@mistake(
    "logsumexp",
    en="One maximum is subtracted from all rows. A row far below it underflows to log 0: take the maximum of each row.",
    zh="所有行都减去同一个全局最大值。远低于它的行会下溢成 log 0：应取每一行自己的最大值。",
)
def takes_one_max_for_all_sums(x, dim=-1):
    return _log_of_sum(x, dim, x.max()) + x.max()


@mistake(
    "logsumexp",
    en="`dim` is ignored: the sum always runs along the last axis.",
    zh="忽略了 `dim`：总是沿最后一个轴求和。",
)
def sums_along_the_last_axis_always(x, dim=-1):
    return right.logsumexp(x)


@mistake(
    "logsumexp",
    en="The result is no longer connected to the scores (detach, no_grad or .data): no gradient flows.",
    zh="结果和分数断开了（detach、no_grad 或 .data）：梯度传不回去。",
)
def cuts_the_gradient_of_the_log(x, dim=-1):
    return right.logsumexp(x.detach(), dim)


# temperature_softmax


@mistake(
    "temperature_softmax",
    en="The scores are multiplied by the temperature. Divide: a high temperature must flatten the weights.",
    zh="分数乘了温度。应当除以温度：温度高，权重才会更平。",
)
def multiplies_by_the_temperature(x, temperature, dim=-1):
    return right.stable_softmax(x * temperature, dim)


@mistake(
    "temperature_softmax",
    en="The temperature divides the weights after the softmax, so they no longer sum to 1. Divide the scores before it.",
    zh="在 softmax 之后才用温度去除权重，权重的和不再是 1。应在 softmax 之前除分数。",
)
def divides_after_the_softmax(x, temperature, dim=-1):
    return right.stable_softmax(x, dim) / temperature


@mistake(
    "temperature_softmax",
    en="The temperature is ignored.",
    zh="没有使用温度。",
)
def ignores_the_temperature(x, temperature, dim=-1):
    return right.stable_softmax(x, dim)


@mistake(
    "temperature_softmax",
    en="The scores are divided by the square root of the temperature.",
    zh="分数除以了温度的平方根。",
)
def divides_by_the_root(x, temperature, dim=-1):
    return right.stable_softmax(x / temperature**0.5, dim)


@mistake(
    "temperature_softmax",
    en="The weights are raised to the power 1/T and shared out again: right on paper, but a weight that underflowed to 0 "
    "stays 0 however high the temperature is. Divide the scores before the softmax.",
    zh="先做 softmax，再取 1/T 次幂并重新归一化：纸面上正确，但已经下溢成 0 的权重，温度再高也还是 0。应在 softmax 之前除分数。",
)
def raises_the_weights_to_a_power(x, temperature, dim=-1):
    powers = right.stable_softmax(x, dim) ** (1 / temperature)
    total = powers.sum(dim, keepdim=True)
    return powers / total.masked_fill(total == 0, 1.0)


@mistake(
    "temperature_softmax",
    en="The maximum subtracted is that of the scores before dividing. Divide by the temperature first, or divide the "
    "difference: (x − max) / T.",
    zh="减去的是除以温度之前的最大值。应先除以温度再取最大值，或者对差做除法：(x − max) / T。",
)
def subtracts_the_max_of_the_undivided_scores(x, temperature, dim=-1):
    return _share(x / temperature, dim, right._peak(x, dim)).masked_fill(_hollow(x, dim), 0.0)


@mistake(
    "temperature_softmax",
    en="The maximum is not subtracted: a small temperature makes the scores large, and exp overflows.",
    zh="没有减去最大值：温度小会把分数放大，exp 就会上溢。",
)
def forgets_the_max_under_the_temperature(x, temperature, dim=-1):
    return _share(x / temperature, dim).masked_fill(_hollow(x, dim), 0.0)


@mistake(
    "temperature_softmax",
    en="A row of −inf gives NaN. Its weights must be 0.",
    zh="整行 −inf 得到 NaN。它的权重应为 0。",
)
def gives_nan_at_any_temperature(x, temperature, dim=-1):
    x = x / temperature
    return _share(x, dim, x.amax(dim, keepdim=True))


@mistake(
    "temperature_softmax",
    en="`dim` is not passed on: the softmax always runs along the last axis.",
    zh="没有把 `dim` 传下去：softmax 总是沿最后一个轴。",
)
def forgets_to_pass_the_axis_on(x, temperature, dim=-1):
    return right.temperature_softmax(x, temperature)


# masked_softmax


def _share_safely(x, mask, somewhere, dim):
    """Forbidden scores become -inf, but only in rows that are not empty; at the end forbidden weights become 0."""
    return right.stable_softmax(x.masked_fill(~mask & somewhere, -torch.inf), dim).masked_fill(~mask, 0.0)


@mistake(
    "masked_softmax",
    en="The mask is inverted: True was taken to mean drop.",
    zh="掩码反了（把 True 当成了「丢弃」）。",
)
def inverts_the_mask(x, mask, dim=-1):
    return right.masked_softmax(x, ~mask, dim)


@mistake(
    "masked_softmax",
    en="The mask is ignored.",
    zh="没有使用掩码。",
)
def ignores_the_mask(x, mask, dim=-1):
    return right.stable_softmax(x, dim)


@mistake(
    "masked_softmax",
    en="Forbidden weights are set to 0 after the softmax: the row no longer sums to 1. Set forbidden scores to −inf "
    "before it.",
    zh="在 softmax 之后才把禁止的权重置 0：这一行的和不再是 1。应在 softmax 之前把禁止的分数设为 −inf。",
)
def masks_after_the_softmax(x, mask, dim=-1):
    return right.stable_softmax(x, dim) * mask


@mistake(
    "masked_softmax",
    en="Masked after the softmax, then shared out again: right on paper, but a large forbidden score pushes all allowed "
    "weights to 0 first. Set forbidden scores to −inf before the softmax.",
    zh="在 softmax 之后才加掩码再重新归一化：纸面上正确，但很大的禁止分数会先把所有允许的权重压成 0。"
    "应在 softmax 之前把禁止的分数设为 −inf。",
)
def renormalises_after_the_softmax(x, mask, dim=-1):
    weights = right.stable_softmax(x, dim) * mask
    total = weights.sum(dim, keepdim=True)
    return weights / total.masked_fill(total == 0, 1.0)


@mistake(
    "masked_softmax",
    en="Forbidden scores become 0. A score of 0 is an ordinary score, e⁰ = 1: use −inf.",
    zh="把禁止位置的分数变成了 0。0 只是普通分数，e⁰ = 1：要用 −inf。",
)
def sets_forbidden_scores_to_zero(x, mask, dim=-1):
    return right.stable_softmax(x.masked_fill(~mask, 0.0), dim)


@mistake(
    "masked_softmax",
    en="The mask is added to the scores as 0 and 1. It must become 0 and −inf first.",
    zh="把掩码当作 0 和 1 加到了分数上。应先变成 0 和 −inf。",
)
def adds_the_mask_as_a_number(x, mask, dim=-1):
    return right.stable_softmax(x + mask, dim)


@mistake(
    "masked_softmax",
    en="Forbidden scores get a number such as −100, which is not small enough: very negative allowed scores lose to it. "
    "Use −inf.",
    zh="禁止位置只设成 −100 之类的数，还不够小：允许的分数很负时反而输给它。要用 −inf。",
)
def fills_with_a_small_negative(x, mask, dim=-1):
    weights = right.stable_softmax(x.masked_fill(~mask, -100.0), dim)
    return weights * mask.expand_as(x).any(dim, keepdim=True)


@mistake(
    "masked_softmax",
    en="A row with nothing allowed gets equal weights: −1e9 everywhere is the same as 0 everywhere. Its weights must be 0.",
    zh="一个都不允许的行得到了均等的权重：整行都是 −1e9 等于整行都是 0。它的权重应为 0。",
)
def spreads_an_empty_row_evenly(x, mask, dim=-1):
    return right.stable_softmax(x.masked_fill(~mask, -1e9), dim)


@mistake(
    "masked_softmax",
    en="A row with nothing allowed gives NaN: it is 0/0. Its weights must be 0.",
    zh="一个都不允许的行得到 NaN：那是 0/0。它的权重应为 0。",
)
def gives_nan_where_nothing_is_allowed(x, mask, dim=-1):
    x = x.masked_fill(~mask, -torch.inf)
    return _share(x, dim, x.amax(dim, keepdim=True))


@mistake(
    "masked_softmax",
    en="A row with nothing allowed has the right weights, but its gradient is NaN: a −inf bias was added and the NaN wiped "
    "away at the end. Fill with masked_fill or torch.where, which stop the gradient, or keep the NaN from arising.",
    zh="一个都不允许的行，权重是对的，梯度却是 NaN：加上 −inf 偏置后，只在最后抹去了 NaN。"
    "应使用能截断梯度的 masked_fill 或 torch.where，或者不让 NaN 出现。",
)
def wipes_nan_from_the_masked_weights_only(x, mask, dim=-1):
    x = x + torch.zeros(mask.shape, dtype=x.dtype).masked_fill(~mask, -torch.inf)
    return _share(x, dim, x.amax(dim, keepdim=True)).nan_to_num(0.0)


@mistake(
    "masked_softmax",
    en="`dim` is ignored: the softmax always runs along the last axis.",
    zh="忽略了 `dim`：softmax 总是沿最后一个轴。",
)
def masks_along_the_last_axis_always(x, mask, dim=-1):
    return right.masked_softmax(x, mask)


@mistake(
    "masked_softmax",
    en="Empty rows are looked for along the last axis whatever `dim` is. Use `dim` there too.",
    zh="不管 `dim` 是多少，总沿最后一个轴找空行。这里也要用 `dim`。",
)
def looks_for_empty_rows_along_the_last_axis(x, mask, dim=-1):
    mask = mask.expand_as(x)
    return _share_safely(x, mask, mask.any(-1, keepdim=True), dim)


@mistake(
    "masked_softmax",
    en="Empty rows are looked for in the mask before it has the shape of the scores, where axis `dim` is another axis. "
    "Expand the mask first, or count from the end.",
    zh="掩码还没有扩展成分数的形状就去找空行，这时 `dim` 指的是另一个轴。应先扩展掩码，或者从末尾数轴。",
)
def looks_for_empty_rows_before_broadcasting(x, mask, dim=-1):
    return _share_safely(x, mask, mask.any(dim, keepdim=True), dim)


@mistake(
    "masked_softmax",
    en="The mask must have the shape of the scores here. A smaller mask has to broadcast: use masked_fill or torch.where "
    "instead of indexing.",
    zh="这里要求掩码和分数形状相同。较小的掩码也要能广播：请用 masked_fill 或 torch.where，不要用下标索引。",
)
def needs_a_mask_of_the_same_shape(x, mask, dim=-1):
    hidden = torch.full_like(x, -torch.inf)
    hidden[mask] = x[mask]
    return right.stable_softmax(hidden, dim)


# softmax_vjp


@mistake(
    "softmax_vjp",
    en="The inner product is missing: p · grad is only half of it. Raising one score lowers all other weights, so subtract "
    "Σ p·grad from grad first.",
    zh="缺少内积：p · grad 只是一半。一个分数升高，其他权重都会降低，所以要先从 grad 中减去 Σ p·grad。",
)
def forgets_the_inner_product(p, grad):
    return p * grad


@mistake(
    "softmax_vjp",
    en="Only the diagonal of the Jacobian is used, p(1 − p). The other entries, −p_i p_j, matter as much.",
    zh="只用了雅可比矩阵的对角线 p(1 − p)。其余元素 −p_i p_j 同样重要。",
)
def keeps_only_the_diagonal(p, grad):
    return p * (1 - p) * grad


@mistake(
    "softmax_vjp",
    en="The sum of grad is subtracted without weights. It must be weighted by p: Σ p·grad.",
    zh="减去的是 grad 的总和，没有加权。应当用 p 加权：Σ p·grad。",
)
def subtracts_the_plain_sum(p, grad):
    return p * (grad - grad.sum(-1, keepdim=True))


@mistake(
    "softmax_vjp",
    en="The mean of grad is subtracted. It must be the mean weighted by p: Σ p·grad.",
    zh="减去的是 grad 的普通平均。应当是用 p 加权的平均：Σ p·grad。",
)
def subtracts_the_plain_mean(p, grad):
    return p * (grad - grad.mean(-1, keepdim=True))


@mistake(
    "softmax_vjp",
    en="The factor p in front is missing.",
    zh="前面缺少因子 p。",
)
def forgets_the_outer_weight(p, grad):
    return grad - (p * grad).sum(-1, keepdim=True)


@mistake(
    "softmax_vjp",
    en="The inner product is subtracted without the factor p: p·grad − Σ p·grad. Write p·(grad − Σ p·grad).",
    zh="减去内积时漏了因子 p，成了 p·grad − Σ p·grad。应为 p·(grad − Σ p·grad)。",
)
def subtracts_outside_the_bracket(p, grad):
    return p * grad - (p * grad).sum(-1, keepdim=True)


@mistake(
    "softmax_vjp",
    en="This is the gradient of log-softmax, grad − p·Σ grad.",
    zh="这是 log-softmax 的梯度 grad − p·Σ grad。",
)
def differentiates_the_log_softmax(p, grad):
    return grad - p * grad.sum(-1, keepdim=True)


@mistake(
    "softmax_vjp",
    en="The inner product is added instead of subtracted.",
    zh="内积应当减去，却加上了。",
)
def adds_the_inner_product(p, grad):
    return p * (grad + (p * grad).sum(-1, keepdim=True))


@mistake(
    "softmax_vjp",
    en="The inner product runs over the whole tensor. Each row has its own: sum along the last axis with keepdim=True.",
    zh="内积是对整个张量求的。每一行各有自己的内积：应沿最后一个轴求和，并加上 keepdim=True。",
)
def sums_over_all_rows(p, grad):
    return p * (grad - (p * grad).sum())


@mistake(
    "softmax_vjp",
    en="keepdim=True is missing in the sum, so the inner products are laid along the wrong axis or do not fit at all.",
    zh="求和时缺少 keepdim=True，内积被放到了错误的轴上，或者形状根本对不上。",
)
def forgets_to_keep_the_axis(p, grad):
    return p * (grad - (p * grad).sum(-1))


@mistake(
    "softmax_vjp",
    en="Each row is divided by the sum of its weights. A row of zeros then gives 0/0: the sum is already 1 where it is not 0.",
    zh="每行又除以权重之和。整行为 0 时就是 0/0；而不为 0 的行，和本来就是 1。",
)
def divides_by_the_sum_of_the_weights(p, grad):
    return p * (grad - (p * grad).sum(-1, keepdim=True) / p.sum(-1, keepdim=True))


@mistake(
    "softmax_vjp",
    en="The answer is right, but the whole n × n Jacobian is built on the way. Write out (diag(p) − p pᵀ)·grad by hand: "
    "two products and one sum are enough.",
    zh="答案正确，但途中建了整个 n × n 的雅可比矩阵。把 (diag(p) − p pᵀ)·grad 展开：两次乘法、一次求和就够了。",
)
def builds_the_jacobian(p, grad):
    jacobian = torch.diag_embed(p) - p[..., :, None] * p[..., None, :]
    return (jacobian @ grad[..., None])[..., 0]


@mistake(
    "softmax_vjp",
    en="The Jacobian is not stored, but it is still computed row by row: n² work. Σ p·grad is the same for all "
    "entries of a row, so compute it once.",
    zh="没有存下雅可比矩阵，却仍逐行把它算了一遍：计算量是 n²。同一行里 Σ p·grad 对每个元素都相同，只需算一次。",
)
def goes_through_the_jacobian_row_by_row(p, grad):
    columns = []
    for i in range(p.shape[-1]):
        row = -p[..., i : i + 1] * p
        row[..., i] += p[..., i]
        columns.append((row * grad).sum(-1))
    return torch.stack(columns, -1)
