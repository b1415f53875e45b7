"""Chapter 17: applications.

Functions are judged by value. The three modules are judged by what they do, because their layers are the learner's
choice: a test edits part of the input and checks whether the answer changes. The transcript keeps only these facts, so
that a mistake is recognised whatever layers the module has.
"""

import torch

from autograder.exam import (
    PRECISIONS,
    Module,
    Raised,
    agree,
    gradients_match,
    left_alone,
    matches,
    promise,
    require,
    wrong,
)
from autograder.exam.sentences import FLOAT32_AND_BFLOAT16, GRADIENTS
from autograder.reference import ch17_applications as reference

# patchify


@promise(
    "patchify",
    en="Patches come row by row, and each lists its pixels by channel, row, column.",
    zh="图块按行依次排列，每块里的像素按通道、行、列的次序展开。",
    weight=2,
)
def test_patches_come_row_by_row(student, draw):
    matches(student, reference.patchify, draw(2, 3, 8, 12), 4)
    matches(student, reference.patchify, draw(3, 2, 15, 6), patch=3)


@promise(
    "patchify",
    en="A linear layer on the patches is a convolution of stride p with the same weights.",
    zh="对图块做线性层，就等于用同样的权重做步幅为 p 的卷积。",
)
def test_a_linear_layer_on_patches_is_a_convolution(student, draw):
    images, kernel = draw(2, 3, 6, 10), draw(5, 3, 2, 2)
    patches = matches(student, reference.patchify, images, 2)
    agree(patches @ kernel.flatten(1).T, convolution, images, kernel)


def convolution(images, kernel):
    return torch.nn.functional.conv2d(images, kernel, stride=kernel.shape[-1]).flatten(2).transpose(1, 2)


@promise(
    "patchify",
    en="Patches of one pixel work, and so does one patch for the whole image.",
    zh="一个像素一块，或整幅图就是一块，也都正确。",
)
def test_the_smallest_and_the_largest_patch(student, draw):
    images = draw(2, 3, 5, 5)
    matches(student, reference.patchify, images, 1)
    matches(student, reference.patchify, images, 5)


@promise(
    "patchify",
    en="Pixels only move: whole numbers stay exact, and the dtype stays the same.",
    zh="像素只是换位置：整数不变，dtype 不变。",
)
def test_pixels_only_move(student, draw):
    matches(student, reference.patchify, draw.permutation(2 * 3 * 4 * 6).view(2, 3, 4, 6), 2)
    for dtype in PRECISIONS:
        matches(student, reference.patchify, draw(2, 3, 4, 6, dtype=dtype), 2)


@promise("patchify", en="Gradients flow back to their pixels.", zh="梯度沿原路回到各自的像素。")
def test_gradients_reach_the_pixels(student, draw):
    gradients_match(student, reference.patchify, draw(2, 3, 4, 6), 2, wrt=(0,), cotangents=(draw(2, 6, 12),))


@promise(
    "patchify",
    en="A height or a width that the patch does not divide raises ValueError.",
    zh="高或宽不能被图块大小整除时，抛出 ValueError。",
)
def test_sizes_that_do_not_divide_are_refused(student, draw):
    for images in (draw(2, 3, 10, 12), draw(2, 3, 12, 10)):
        require(
            student.refuses("patchify", images, 4),
            f"patchify: {images.shape[2]} × {images.shape[3]} in patches of 4 must raise ValueError",
            f"patchify：{images.shape[2]} × {images.shape[3]} 切成 4 × 4 的块，应抛出 ValueError",
        )
    matches(student, reference.patchify, draw(2, 3, 12, 8), 4)


@promise("patchify", en="The images stay as they were.", zh="不改动输入的图像。")
def test_patchify_leaves_the_images_alone(student, draw):
    left_alone(student, reference.patchify, draw(2, 3, 6, 4), 2)


# clip_logits


@promise(
    "clip_logits",
    en="The cosine of every image (row) with every text (column), times the scale.",
    zh="每幅图（行）与每段文字（列）的余弦，再乘以 logit_scale。",
    weight=2,
)
def test_cosines_times_the_scale(student, draw):
    matches(student, reference.clip_logits, draw(3, 6), draw(5, 6), 7.5)
    matches(student, reference.clip_logits, draw(4, 5), draw(4, 5), logit_scale=0.5)


@promise("clip_logits", en="How long a feature vector is does not matter.", zh="特征向量的长短不影响结果。")
def test_lengths_do_not_matter(student, draw):
    images, texts = draw(3, 6), draw(4, 6)
    longer = images * torch.tensor([[9.0], [0.25], [3.0]], dtype=torch.float64), texts * 5
    agree(matches(student, reference.clip_logits, *longer, 10.0), reference.clip_logits, images, texts, 10.0)


@promise(
    "clip_logits",
    en="The scale may be a tensor, as a learned scale is.",
    zh="logit_scale 可以是张量，因为它往往是学来的。",
)
def test_the_scale_may_be_a_tensor(student, draw):
    matches(student, reference.clip_logits, draw(3, 6), draw(5, 6), torch.tensor(14.0, dtype=torch.float64))


@promise(
    "clip_logits",
    en="Gradients of both features and of the scale are right.",
    zh="两种特征和 logit_scale 的梯度都正确。",
)
def test_gradients_reach_features_and_scale(student, draw):
    scale = torch.tensor(3.0, dtype=torch.float64)
    inputs = draw(3, 6), draw(5, 6), scale
    gradients_match(student, reference.clip_logits, *inputs, wrt=(0, 1, 2), cotangents=(draw(3, 5),))


@promise("clip_logits", FLOAT32_AND_BFLOAT16)
def test_logits_in_lower_precision(student, draw):
    for dtype in PRECISIONS:
        matches(student, reference.clip_logits, draw(3, 6, dtype=dtype), draw(5, 6, dtype=dtype), 4.0)


@promise("clip_logits", en="The features stay as they were.", zh="不改动输入的特征。")
def test_logits_leave_the_features_alone(student, draw):
    left_alone(student, reference.clip_logits, draw(3, 6), draw(5, 6), 2.0)


# clip_loss


@promise(
    "clip_loss",
    en="The mean of two cross-entropies: images that look for their text, and texts that look for their image.",
    zh="两个交叉熵的平均：图找文，文找图。",
    weight=2,
)
def test_the_loss_is_the_mean_of_both_directions(student, draw):
    matches(student, reference.clip_loss, draw(5, 5, scale=3.0))
    matches(student, reference.clip_loss, draw(2, 2))


@promise(
    "clip_loss",
    en="Images and texts may change places: the transposed table has the same loss.",
    zh="图和文对调（转置）之后，损失不变。",
)
def test_images_and_texts_may_change_places(student, draw):
    logits = draw(4, 4, scale=2.0)
    agree(matches(student, reference.clip_loss, logits.T.contiguous()), reference.clip_loss, logits)


@promise("clip_loss", en="Huge logits do not overflow.", zh="很大的 logits 也不会溢出。")
def test_huge_logits_do_not_overflow(student, draw):
    matches(student, reference.clip_loss, draw(4, 4, scale=2000.0))
    matches(student, reference.clip_loss, draw(4, 4) - 5000)


@promise("clip_loss", GRADIENTS)
def test_gradients_of_the_loss(student, draw):
    cotangent = torch.tensor(1.5, dtype=torch.float64)
    gradients_match(student, reference.clip_loss, draw(5, 5, scale=2.0), wrt=(0,), cotangents=(cotangent,))


@promise("clip_loss", FLOAT32_AND_BFLOAT16)
def test_the_loss_in_lower_precision(student, draw):
    for dtype in PRECISIONS:
        matches(student, reference.clip_loss, draw(4, 4, scale=2.0, dtype=dtype))


@promise("clip_loss", en="The logits stay as they were.", zh="不改动输入的 logits。")
def test_the_loss_leaves_the_logits_alone(student, draw):
    left_alone(student, reference.clip_loss, draw(4, 4))


# the three modules, by what they do


class Watched:
    """A module in eval mode that is called on edited inputs. Whether its answer changes is noted as True or False.

    A change in the last third of the answer's digits is rounding; any other change is real.
    Parameters that start at zero or very small, as positions and output layers often do, are enlarged first.
    """

    def __init__(self, student, draw, name, *sizes, **options):
        self.student, self.draw, self.name = student, draw, name
        self.sizes, self.options = sizes, options
        self.noted, self.broken = [], []

    def __enter__(self):
        self.module = getattr(self.student, self.name)(*self.sizes, **self.options)
        self.demand(isinstance(self.module, Module), "is not an nn.Module", "不是 nn.Module")
        self.module.eval()
        weights = self.module.parameters()
        weights = weights if isinstance(weights, dict) else {}
        loud = {n: self.loud(x) for n, x in weights.items() if isinstance(x, torch.Tensor) and x.is_floating_point()}
        self.module.load(**{name: weight for name, weight in loud.items() if weight is not None})
        return self

    def loud(self, weight):
        """A parameter that starts at zero or very small, made large enough to matter; zeros among other numbers stay."""
        if not weight.any():
            return self.draw(*weight.shape, scale=0.5, dtype=weight.dtype)
        size, ordinary = weight.square().mean().sqrt(), weight.shape[-1] ** -0.5 if weight.dim() > 1 else 0.0
        return weight * (ordinary / size) if size < ordinary else None

    def __exit__(self, kind, raised, trace):
        """Leave only the error or the noted facts to the diagnosis, and nothing that depends on the layers."""
        if isinstance(raised, Raised):
            self.student.keep_only_last_exchange()
            return
        self.student.replace_transcript(self.noted)
        if raised is None and self.broken:
            raise self.broken[0]

    def __call__(self, inputs, *shape):
        """The answer, which must be finite and of this shape."""
        answer = self.module(inputs)
        self.demand(
            isinstance(answer, torch.Tensor) and answer.is_floating_point() and answer.shape == shape,
            f"returns {described(answer)}, expected shape {list(shape)}",
            f"返回 {described(answer)}，应为形状 {list(shape)}",
            note=described(answer),
        )
        self.demand(answer.isfinite().all(), "the answer has NaN or infinities", "结果里有 NaN 或无穷大", note="NaN")
        return answer.detach()

    def demand(self, condition, en, zh, note="broken"):
        if not condition:
            self.noted.append(note)
            raise wrong(f"{self.name}: {en}", f"{self.name}：{zh}")

    def note(self, fact, kept, en, zh):
        """Note a fact and continue, so that all facts are known at the end."""
        self.noted.append(fact)
        if not kept:
            self.broken.append(wrong(f"{self.name}: {en}", f"{self.name}：{zh}"))

    def moves(self, one, other, en, zh):
        """These answers must differ."""
        differ = apart(one, other)
        self.note(differ, differ, en, zh)

    def stays(self, one, other, en, zh):
        """These answers must be the same."""
        differ = apart(one, other)
        self.note(differ, not differ, en, zh)

    def refuses(self, inputs):
        """More steps than max_len raise ValueError."""
        try:
            self.module(inputs)
            kinds = ["nothing"]
        except Raised as raised:
            kinds = raised.kinds
        self.note(
            kinds[0] if kinds else "",
            "ValueError" in kinds,
            f"{inputs.shape[1]} steps are more than max_len and must raise ValueError; this raises {kinds[0]}",
            f"{inputs.shape[1]} 步超过了 max_len，应抛出 ValueError；实际抛出：{kinds[0]}",
        )

    def repeats(self, inputs, *shape):
        """Two calls give the same answer, and the input is left alone."""
        once, again = self(inputs, *shape), self(inputs, *shape)
        changed = self.student.changed_inputs()
        self.stays(
            once, again, "in eval mode, asking twice gives two different answers", "eval 模式下，问两次得到不同的答案"
        )
        self.note(changed, not changed, "the input was changed", "输入被改动了")
        return once

    def gradients(self, inputs, cotangent):
        """The gradient of the input and those of all parameters. No gradient counts as zeros."""
        floating = inputs.is_floating_point()
        found = self.module.vjp(inputs, wrt=(0,) if floating else (), cotangents=(cotangent,))
        gradient = found.gradients[0] if floating else None
        weights = [weight for weight in found.parameter_gradients.values() if weight is not None]
        return torch.zeros(inputs.shape) if gradient is None else gradient, weights


def apart(one, other) -> bool:
    size = max(one.abs().max().item(), other.abs().max().item())
    return (one - other).abs().max().item() > torch.finfo(one.dtype).eps ** (2 / 3) * size


def described(answer) -> str:
    return str(list(answer.shape)) if isinstance(answer, torch.Tensor) else type(answer).__name__


def looks_like_probabilities(answer) -> bool:
    return bool((answer >= 0).all()) and not apart(answer.sum(-1), torch.ones_like(answer[..., 0]))


DEAF = "the answer does not change when {} does", "改动{}，结果却不变"
LEAKS = "the answer changes when {} does", "改动{}，结果竟然跟着变"


def deaf(en, zh):
    return DEAF[0].format(en), DEAF[1].format(zh)


def leaks(en, zh):
    return LEAKS[0].format(en), LEAKS[1].format(zh)


NOT_LOGITS = "returns probabilities; return logits, without softmax", "返回的是概率；应返回 logits，不做 softmax"
ORDERLESS = (
    "the past in another order gives the same answer: positions are missing",
    "过去换个次序，结果竟不变：缺少位置信息",
)


# Recommender

ITEMS = 11
SMALL = {"d_model": 8, "n_heads": 2, "num_layers": 2, "max_len": 9}


def histories(draw, users=3, length=6, padding_id=0):
    """Each user's items, all different and none of them padding."""
    items = torch.tensor([item for item in range(ITEMS) if item != padding_id])
    return torch.stack([items[draw.permutation(ITEMS - 1)[:length]] for _ in range(users)])


def others(draw, sequence, padding_id=0):
    """Another item in every place."""
    shift = draw.integer(1, ITEMS - 2)
    items = torch.tensor([item for item in range(ITEMS) if item != padding_id])
    place = (sequence[..., None] == items).int().argmax(-1)
    return items[(place + shift) % (ITEMS - 1)]


def rewritten(draw, sequence, *place, padding_id=0):
    """The same with other items in this place."""
    changed = sequence.clone()
    changed[place] = others(draw, sequence, padding_id)[place]
    return changed


@promise(
    "Recommender",
    en="One logit per item from the whole history: the oldest item counts, and so does the newest.",
    zh="每个物品一个 logit，来自整个历史：最早的物品起作用，最近的也起作用。",
    weight=2,
)
def test_the_whole_history_is_heard(student, draw):
    with watched(student, draw) as ask:
        history = histories(draw)
        logits = ask(history, 3, ITEMS)
        for place, en, zh in ((0, "the oldest item", "最早的物品"), (5, "the newest item", "最近的物品")):
            ask.moves(logits, ask(rewritten(draw, history, slice(None), place), 3, ITEMS), *deaf(en, zh))
        sums = looks_like_probabilities(logits)
        ask.note(sums, not sums, *NOT_LOGITS)


def watched(student, draw, **options):
    return Watched(student, draw, "Recommender", ITEMS, **{**SMALL, **options})


@promise(
    "Recommender",
    en="Users never see each other: rewriting all other histories leaves a user's logits as they were.",
    zh="用户之间互不可见：把别人的历史全改掉，这个用户的 logits 不变。",
    weight=2,
)
def test_users_never_see_each_other(student, draw):
    with watched(student, draw) as ask:
        history = histories(draw)
        changed = rewritten(draw, history, slice(1, 3))
        one, other = ask(history, 3, ITEMS), ask(changed, 3, ITEMS)
        ask.stays(one[0], other[0], *leaks("another user's history", "别的用户的历史"))
        ask.moves(one[1:], other[1:], *deaf("a user's own history", "用户自己的历史"))


@promise(
    "Recommender",
    en="A user alone gets the same logits as in a batch.",
    zh="单独一个用户，得到的与在批次里时相同。",
)
def test_a_user_alone_gets_the_same(student, draw):
    with watched(student, draw) as ask:
        history = histories(draw, users=4, length=5)
        together = ask(history, 4, ITEMS)
        ask.stays(together[2:3], ask(history[2:3], 1, ITEMS), *leaks("the rest of the batch", "批次里的其他用户"))
        ask.moves(together[2], together[1], *deaf("the history", "历史"))


@promise(
    "Recommender",
    en="Padding on the right has no effect, and the last real item before it still counts.",
    zh="右边的填充没有影响；填充之前的最后一个真实物品仍然起作用。",
    weight=2,
)
def test_padding_is_invisible(student, draw):
    with watched(student, draw) as ask:
        history = histories(draw, length=4)
        short = ask(history, 3, ITEMS)
        for more in (1, 4):
            padded = torch.nn.functional.pad(history, (0, more))
            ask.stays(short, ask(padded, 3, ITEMS), *leaks("the amount of padding", "填充的位数"))
        for place, en, zh in ((0, "the oldest item", "最早的物品"), (3, "the last real item", "最后一个真实物品")):
            changed = rewritten(draw, padded, slice(None), place)
            ask.moves(short, ask(changed, 3, ITEMS), *deaf(en, zh))


@promise(
    "Recommender",
    en="Histories of different lengths share a batch.",
    zh="长短不一的历史可以放在同一个批次里。",
)
def test_lengths_may_differ_within_a_batch(student, draw):
    with watched(student, draw) as ask:
        history, lengths = histories(draw, length=7), (7, 2, 5)
        padded = history.clone()
        for user, length in enumerate(lengths):
            padded[user, length:] = 0
        together = ask(padded, 3, ITEMS)
        for user, length in enumerate(lengths):
            alone = ask(history[user : user + 1, :length], 1, ITEMS)
            ask.stays(together[user : user + 1], alone, *leaks("the padding", "填充"))
        ask.moves(together[0], together[2], *deaf("the history", "历史"))


@promise(
    "Recommender",
    en="padding_id may be any item; item 0 is then a real one.",
    zh="padding_id 可以是任何编号；这时 0 号就是真实物品。",
)
def test_another_padding_id(student, draw):
    with watched(student, draw, padding_id=4) as ask:
        history = histories(draw, length=5, padding_id=4)
        history = torch.where(history == 0, history[:, :1], history)
        history[:, 0] = 0
        padded = torch.nn.functional.pad(history, (0, 2), value=4)
        logits = ask(history, 3, ITEMS)
        ask.stays(logits, ask(padded, 3, ITEMS), *leaks("the padding", "填充"))
        changed = rewritten(draw, history, slice(None), 0, padding_id=4)
        ask.moves(logits, ask(changed, 3, ITEMS), *deaf("item 0, which is real here", "0 号物品（这里它是真实物品）"))


@promise(
    "Recommender",
    en="The order of the history counts.",
    zh="历史的先后次序要起作用。",
)
def test_the_order_of_the_history_counts(student, draw):
    with watched(student, draw) as ask:
        history = histories(draw)
        logits = ask(history, 3, ITEMS)
        ask.moves(logits, ask(history[:, [2, 1, 0, 3, 4, 5]], 3, ITEMS), *ORDERLESS)


@promise(
    "Recommender",
    en="A user with no history gets finite logits and does not affect the others; all gradients are finite.",
    zh="没有历史的用户得到有限的 logits，不影响别人，梯度也全是有限的。",
)
def test_a_user_without_history(student, draw):
    with watched(student, draw) as ask:
        history = histories(draw)
        empty = history.clone()
        empty[1] = 0
        full, partly = ask(history, 3, ITEMS), ask(empty, 3, ITEMS)
        ask.stays(full[[0, 2]], partly[[0, 2]], *leaks("another user's history", "别的用户的历史"))
        ask.moves(full[1], partly[1], *deaf("the history", "历史"))
        _, gradients = ask.gradients(empty, draw(3, ITEMS, dtype=torch.float32))
        finite = bool(gradients) and all(bool(gradient.isfinite().all()) for gradient in gradients)
        ask.note(finite, finite, "a parameter's gradient is NaN or missing", "某个参数的梯度是 NaN，或根本没有梯度")


@promise(
    "Recommender",
    en="With max_len items even the first one counts; one more raises ValueError.",
    zh="有 max_len 个物品时，第一个也起作用；再多一个就抛出 ValueError。",
)
def test_the_recommender_has_a_longest_history(student, draw):
    with watched(student, draw) as ask:
        history = histories(draw, length=10)
        ask.refuses(history)
        longest = history[:, :9]
        changed = rewritten(draw, longest, slice(None), 0)
        ask.moves(ask(longest, 3, ITEMS), ask(changed, 3, ITEMS), *deaf("the first of max_len items", "第一个物品"))


@promise(
    "Recommender",
    en="In eval mode the same input gives the same answer, the input is left alone, and only n_items is required.",
    zh="eval 模式下，同样的输入得到同样的答案；不改动输入；只给 n_items 也能用。",
)
def test_the_recommender_repeats_itself(student, draw):
    with Watched(student, draw, "Recommender", ITEMS) as ask:
        history = histories(draw, users=2, length=7)
        logits = ask.repeats(history, 2, ITEMS)
        ask.moves(logits, ask(others(draw, history), 2, ITEMS), *deaf("the history", "历史"))


# Forecaster


def forecaster(student, draw, input_dim=3, horizon=4, **options):
    return Watched(student, draw, "Forecaster", input_dim, horizon, **{**SMALL, **options})


def series(draw, batch=2, length=6, features=3):
    return draw(batch, length, features, dtype=torch.float32)


def nudged(draw, x, *place):
    changed = x.clone()
    changed[place] += 2 + draw(*changed[place].shape, dtype=torch.float32).abs()
    return changed


@promise(
    "Forecaster",
    en="[B, horizon, F] from the whole past: the first step counts, and so does the last.",
    zh="返回 [B, horizon, F]，依据整个过去：第一步起作用，最后一步也起作用。",
    weight=2,
)
def test_the_whole_past_is_heard(student, draw):
    with forecaster(student, draw) as ask:
        x = series(draw)
        forecast = ask(x, 2, 4, 3)
        for step, en, zh in ((0, "the first step", "第一步"), (5, "the last step", "最后一步")):
            ask.moves(forecast, ask(nudged(draw, x, slice(None), step), 2, 4, 3), *deaf(en, zh))


@promise(
    "Forecaster",
    en="The series of a batch never see each other, and one alone gets the same forecast.",
    zh="同一批次里的序列互不可见；单独一条序列，预测也相同。",
    weight=2,
)
def test_series_never_see_each_other(student, draw):
    with forecaster(student, draw) as ask:
        x = series(draw, batch=5)
        one, other = ask(x, 5, 4, 3), ask(nudged(draw, x, slice(1, 5)), 5, 4, 3)
        ask.stays(one[0], other[0], *leaks("another series", "别的序列"))
        ask.moves(one[1:], other[1:], *deaf("a series itself", "序列自己"))
        ask.stays(one[2:3], ask(x[2:3], 1, 4, 3), *leaks("the rest of the batch", "批次里的其他序列"))


@promise(
    "Forecaster",
    en="Order matters: the same past in another order, with the same last step, gives another forecast.",
    zh="次序要起作用：最后一步不变，前面换个次序，预测就不同。",
    weight=2,
)
def test_the_order_of_the_past_matters(student, draw):
    with forecaster(student, draw) as ask:
        x = series(draw, length=7)
        forecast = ask(x, 2, 4, 3)
        ask.moves(forecast, ask(x[:, [3, 0, 4, 1, 5, 2, 6]], 2, 4, 3), *ORDERLESS)


@promise(
    "Forecaster",
    en="Any number of features and any horizon: one, or more than the steps that were seen.",
    zh="特征数和预测步数任意：可以是 1，也可以比看到的步数还多。",
)
def test_any_features_and_any_horizon(student, draw):
    for features, horizon, length in ((1, 7, 5), (5, 1, 3)):
        with forecaster(student, draw, features, horizon) as ask:
            x = series(draw, length=length, features=features)
            forecast = ask(x, 2, horizon, features)
            changed = ask(nudged(draw, x, slice(None), 0), 2, horizon, features)
            ask.moves(forecast, changed, *deaf("the first step", "第一步"))


@promise(
    "Forecaster",
    en="The steps of the forecast are not copies of one another.",
    zh="预测的各步不是同一个值的复制。",
)
def test_the_steps_of_the_forecast_differ(student, draw):
    with forecaster(student, draw) as ask:
        forecast = ask(series(draw), 2, 4, 3)
        ask.moves(forecast[:, 0], forecast[:, 1], "every step of the forecast is the same", "预测的每一步都一样")
        ask.moves(forecast[:, :, 0], forecast[:, :, 1], "every feature has the same forecast", "每个特征的预测都一样")


@promise(
    "Forecaster",
    en="Gradients reach every step and feature of the series that is forecast, and no other series.",
    zh="梯度到达被预测序列的每一步、每个特征，而不到别的序列。",
)
def test_gradients_reach_the_own_series_only(student, draw):
    with forecaster(student, draw) as ask:
        cotangent = torch.zeros(2, 4, 3)
        cotangent[0] = draw(4, 3, dtype=torch.float32)
        gradient, _ = ask.gradients(series(draw), cotangent)
        reach_own_only(ask, gradient)


def reach_own_only(ask, gradient):
    own, leak = bool(gradient[0].all() and gradient.isfinite().all()), bool(gradient[1:].any())
    ask.note(own, own, "some of its own past gets no gradient", "自己过去的某些部分得不到梯度")
    ask.note(leak, not leak, "a gradient reaches another member of the batch", "梯度流到了批次里的别的成员")


@promise(
    "Forecaster",
    en="From one step to max_len steps; one more raises ValueError.",
    zh="从 1 步到 max_len 步都可以；再多一步就抛出 ValueError。",
)
def test_the_forecaster_has_a_longest_past(student, draw):
    with forecaster(student, draw) as ask:
        ask.refuses(series(draw, length=10))
        for length in (9, 1):
            x = series(draw, length=length)
            changed = ask(nudged(draw, x, slice(None), 0), 2, 4, 3)
            ask.moves(ask(x, 2, 4, 3), changed, *deaf("the first step", "第一步"))


@promise(
    "Forecaster",
    en="In eval mode the same input gives the same answer, the input is left alone, and only the first two arguments are required.",
    zh="eval 模式下，同样的输入得到同样的答案；不改动输入；只给前两个参数也能用。",
)
def test_the_forecaster_repeats_itself(student, draw):
    with Watched(student, draw, "Forecaster", 3, 5) as ask:
        x = series(draw, length=8)
        forecast = ask.repeats(x, 2, 5, 3)
        ask.moves(forecast, ask(nudged(draw, x, slice(None), 0), 2, 5, 3), *deaf("the first step", "第一步"))


# graph_attention


def graph(draw, n=6, d_in=5, d_out=4, dtype=torch.float64):
    """h, adj, W, a. The diagonal of adj is False, and adj is not symmetric."""
    adj = draw.mask(n, n, share=0.5).fill_diagonal_(False)
    adj[0, 1], adj[1, 0], adj[0, 2] = True, False, False
    return draw(n, d_in, dtype=dtype), adj, draw(d_out, d_in, scale=0.6, dtype=dtype), draw(2 * d_out, dtype=dtype)


@promise(
    "graph_attention",
    en="A node mixes W h of itself and of those it may look at, by softmax of LeakyReLU(a · [W h_i ‖ W h_j]).",
    zh="节点按 LeakyReLU(a · [W h_i ‖ W h_j]) 的 softmax，混合自己和它可以看的节点的 W h。",
    weight=2,
)
def test_a_node_mixes_its_neighbours(student, draw):
    matches(student, reference.graph_attention, *graph(draw))
    matches(student, reference.graph_attention, *graph(draw, n=7, d_in=3, d_out=6))


@promise(
    "graph_attention",
    en="Every node sees itself, once, whether adj says so or not; an isolated node gives just W h.",
    zh="每个节点都看得到自己，而且只算一次，不管 adj 有没有写；孤立的节点得到的就是 W h。",
)
def test_every_node_sees_itself(student, draw):
    h, adj, W, a = graph(draw)
    adj[3], adj[4, 4] = False, True
    matches(student, reference.graph_attention, h, adj, W, a)
    looped = adj | torch.eye(6, dtype=torch.bool)
    agree(matches(student, reference.graph_attention, h, looped, W, a), reference.graph_attention, h, adj, W, a)


@promise(
    "graph_attention",
    en="adj[i, j] says that i may look at j, not the other way round.",
    zh="adj[i, j] 说的是 i 可以看 j，而不是反过来。",
)
def test_edges_have_a_direction(student, draw):
    h, _, W, a = graph(draw)
    chain = torch.ones(6, 6, dtype=torch.bool).tril(-1)
    matches(student, reference.graph_attention, h, chain, W, a)


@promise(
    "graph_attention",
    en="A node that is not a neighbour has no effect, however large its features are.",
    zh="不是邻居的节点，特征再大也没有影响。",
)
def test_strangers_are_not_heard(student, draw):
    h, adj, W, a = graph(draw)
    adj[:, 5] = False
    h[5] *= 300
    matches(student, reference.graph_attention, h, adj, W, a)


@promise("graph_attention", en="The negative slope is obeyed.", zh="negative_slope 起作用。")
def test_the_negative_slope_is_obeyed(student, draw):
    tensors = graph(draw)
    for slope in (0.0, 0.5, 1.0):
        matches(student, reference.graph_attention, *tensors, negative_slope=slope)


@promise("graph_attention", en="Large scores do not overflow.", zh="分数很大也不会溢出。")
def test_large_scores_do_not_overflow(student, draw):
    h, adj, W, a = graph(draw)
    matches(student, reference.graph_attention, h, adj, W, a * 500)


@promise("graph_attention", en="Gradients of h, W and a are right.", zh="h、W、a 的梯度都正确。")
def test_gradients_reach_nodes_and_weights(student, draw):
    gradients_match(student, reference.graph_attention, *graph(draw), wrt=(0, 2, 3), cotangents=(draw(6, 4),))


@promise("graph_attention", FLOAT32_AND_BFLOAT16)
def test_graphs_in_lower_precision(student, draw):
    for dtype in PRECISIONS:
        matches(student, reference.graph_attention, *graph(draw, dtype=dtype))


@promise("graph_attention", en="The inputs stay as they were, adj too.", zh="不改动输入，adj 也不改。")
def test_graphs_are_left_alone(student, draw):
    left_alone(student, reference.graph_attention, *graph(draw))


# AttentionPolicy


def policy(student, draw, state_dim=5, action_dim=3, **options):
    sizes = {"d_model": 8, "n_heads": 2, "max_len": 9}
    return Watched(student, draw, "AttentionPolicy", state_dim, action_dim, **{**sizes, **options})


@promise(
    "AttentionPolicy",
    en="[B, A] logits from the whole history: the oldest state counts, and so does the present one.",
    zh="由整个历史得到 [B, A] 的 logits：最早的状态起作用，当前的状态也起作用。",
    weight=2,
)
def test_all_states_are_heard(student, draw):
    with policy(student, draw) as ask:
        history = series(draw, batch=4, features=5)
        logits = ask(history, 4, 3)
        for step, en, zh in ((0, "the oldest state", "最早的状态"), (5, "the present state", "当前的状态")):
            ask.moves(logits, ask(nudged(draw, history, slice(None), step), 4, 3), *deaf(en, zh))
        sums = looks_like_probabilities(logits)
        ask.note(sums, not sums, *NOT_LOGITS)


@promise(
    "AttentionPolicy",
    en="Episodes never see each other, and one alone gets [1, A].",
    zh="各回合互不可见；单独一个回合也返回 [1, A]。",
)
def test_episodes_never_see_each_other(student, draw):
    with policy(student, draw) as ask:
        history = series(draw, batch=4, features=5)
        one, other = ask(history, 4, 3), ask(nudged(draw, history, slice(1, 4)), 4, 3)
        ask.stays(one[0], other[0], *leaks("another episode", "别的回合"))
        ask.moves(one[1:], other[1:], *deaf("an episode itself", "回合自己"))
        ask.stays(one[2:3], ask(history[2:3], 1, 3), *leaks("the rest of the batch", "批次里的其他回合"))


@promise(
    "AttentionPolicy",
    en="Order matters: a shuffled past with the same present gives other logits.",
    zh="次序要起作用：当前不变，过去打乱，logits 就不同。",
    weight=2,
)
def test_the_order_of_the_states_matters(student, draw):
    with policy(student, draw) as ask:
        history = series(draw, batch=2, length=7, features=5)
        logits = ask(history, 2, 3)
        ask.moves(logits, ask(history[:, [3, 0, 4, 1, 5, 2, 6]], 2, 3), *ORDERLESS)


@promise(
    "AttentionPolicy",
    en="Any number of state variables: 4, 3 or 1, with the default width and heads.",
    zh="状态变量个数任意：4、3 或 1，宽度和头数用默认值。",
)
def test_any_number_of_state_variables(student, draw):
    for states in (4, 3, 1):
        with Watched(student, draw, "AttentionPolicy", states, 6) as ask:
            history = series(draw, length=5, features=states)
            changed = nudged(draw, history, slice(None), 0)
            ask.moves(ask(history, 2, 6), ask(changed, 2, 6), *deaf("the oldest state", "最早的状态"))


@promise(
    "AttentionPolicy",
    en="Gradients reach every state of the same episode, and no other episode.",
    zh="梯度到达本回合的每个状态，而不到别的回合。",
)
def test_gradients_reach_the_own_episode_only(student, draw):
    with policy(student, draw) as ask:
        cotangent = torch.zeros(2, 3)
        cotangent[0] = draw(3, dtype=torch.float32)
        gradient, _ = ask.gradients(series(draw, features=5), cotangent)
        reach_own_only(ask, gradient)


@promise(
    "AttentionPolicy",
    en="From one state to max_len states; one more raises ValueError.",
    zh="从 1 个状态到 max_len 个状态都可以；再多一个就抛出 ValueError。",
)
def test_the_policy_has_a_longest_history(student, draw):
    with policy(student, draw) as ask:
        ask.refuses(series(draw, length=10, features=5))
        for length in (9, 1):
            history = series(draw, length=length, features=5)
            changed = ask(nudged(draw, history, slice(None), 0), 2, 3)
            ask.moves(ask(history, 2, 3), changed, *deaf("the oldest state", "最早的状态"))


@promise(
    "AttentionPolicy",
    en="In eval mode the same input gives the same answer, and the input is left alone.",
    zh="eval 模式下，同样的输入得到同样的答案；不改动输入。",
)
def test_the_policy_repeats_itself(student, draw):
    with policy(student, draw) as ask:
        history = series(draw, batch=4, features=5)
        logits = ask.repeats(history, 4, 3)
        ask.moves(logits, ask(nudged(draw, history, slice(None), 0), 4, 3), *deaf("the oldest state", "最早的状态"))


# attention_rollout


def layers(draw, depth=3, batch=2, heads=4, length=5, dtype=torch.float64):
    """The attention weights of some layers, peaked enough that no two are alike."""
    return [torch.softmax(draw(batch, heads, length, length, scale=2.0), -1).to(dtype) for _ in range(depth)]


@promise(
    "attention_rollout",
    en="Average over heads, mix half and half with the identity, and multiply later layers from the left.",
    zh="对头取平均，一半留给单位阵，后一层从左边乘。",
    weight=2,
)
def test_rollout_multiplies_layer_by_layer(student, draw):
    matches(student, reference.attention_rollout, layers(draw))
    matches(student, reference.attention_rollout, layers(draw, depth=2, batch=3, heads=2, length=4))


@promise(
    "attention_rollout", en="One layer is half itself, half identity.", zh="只有一层时，一半是它自己，一半是单位阵。"
)
def test_the_rollout_of_one_layer(student, draw):
    matches(student, reference.attention_rollout, layers(draw, depth=1))


@promise(
    "attention_rollout",
    en="Rows that do not sum to 1, such as that of a query that may look nowhere, are renormalised.",
    zh="和不为 1 的行（例如哪里都不许看的查询）要重新归一化。",
)
def test_rows_are_renormalised(student, draw):
    attentions = layers(draw)
    attentions[0][0, :, 2] = 0.0
    attentions[1][1, 1:3, 3] = 0.0
    attentions[2][1, :, 4] *= 0.5
    matches(student, reference.attention_rollout, attentions)


@promise("attention_rollout", en="Many layers work too.", zh="层数很多也正确。")
def test_a_deep_rollout(student, draw):
    matches(student, reference.attention_rollout, layers(draw, depth=7, length=3))


@promise("attention_rollout", FLOAT32_AND_BFLOAT16)
def test_rollout_in_lower_precision(student, draw):
    for dtype in PRECISIONS:
        matches(student, reference.attention_rollout, layers(draw, dtype=dtype))


@promise("attention_rollout", en="The attention weights stay as they were.", zh="不改动输入的注意力权重。")
def test_rollout_leaves_the_weights_alone(student, draw):
    left_alone(student, reference.attention_rollout, layers(draw))
