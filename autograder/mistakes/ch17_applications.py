"""Chapter 17: attention put to work over the wrong axis, without order, with the wrong scale."""

import torch
from torch import nn
from torch.nn import functional as F

from autograder.reference import ch17_applications as right

from . import mistake

# patchify


@mistake(
    "patchify",
    en="The patches come column by column. List them row by row: the grid's rows are the slower axis.",
    zh="图块是按列排的。应按行排：网格的行是变化较慢的轴。",
)
def lists_the_patches_by_columns(images, patch):
    rows, columns = images.shape[2] // patch, images.shape[3] // patch
    return right.patchify(images, patch).unflatten(1, (rows, columns)).transpose(1, 2).flatten(1, 2)


@mistake(
    "patchify",
    en="Inside a patch, rows and columns changed places: every patch lies on its side. The order is channel, row, column.",
    zh="块内的行和列对调了：每一块都被转置了。次序应为通道、行、列。",
)
def turns_each_patch_on_its_side(images, patch):
    cut = right.patchify(images, patch).unflatten(-1, (-1, patch, patch))
    return cut.transpose(-1, -2).flatten(2)


@mistake(
    "patchify",
    en="Inside a patch the channels come last. A convolution's weight is [out, C, p, p]: channels come first.",
    zh="块内的通道排在了最后。卷积的权重是 [out, C, p, p]：通道在前。",
)
def puts_the_channels_last(images, patch):
    return right.patchify(images, patch).unflatten(-1, (images.shape[1], -1)).transpose(-1, -2).flatten(2)


@mistake(
    "patchify",
    en="One reshape to [B, N, C·p·p] has the right shape and cuts the picture into strips. Cut both axes, then move the grid's axes forward.",
    zh="直接 reshape 成 [B, N, C·p·p]，形状对，却把图像切成了长条。应先把高、宽各切成两个轴，再把网格的轴移到前面。",
)
def reshapes_straight_into_patches(images, patch):
    return images.reshape(right.patchify(images, patch).shape)


@mistake(
    "patchify",
    en="Pixels that do not fill a whole patch are dropped silently. Sizes that do not divide raise ValueError.",
    zh="凑不满一块的像素被悄悄丢掉了。不能整除时应抛出 ValueError。",
)
def drops_the_pixels_left_over(images, patch):
    height, width = (size - size % patch for size in images.shape[2:])
    return right.patchify(images[:, :, :height, :width], patch)


# clip_logits


@mistake(
    "clip_logits",
    en="The features are not normalised: the longest vector wins. Divide each by its norm.",
    zh="特征没有归一化：谁的向量长谁就赢。每个向量都要除以自己的模长。",
)
def forgets_to_normalise(image_features, text_features, logit_scale):
    return logit_scale * image_features @ text_features.T


@mistake(
    "clip_logits",
    en="Only the images are normalised; a long text vector still wins every row.",
    zh="只归一化了图像；长的文字向量仍会赢下每一行。",
)
def normalises_the_images_only(image_features, text_features, logit_scale):
    return logit_scale * F.normalize(image_features, dim=-1) @ text_features.T


@mistake(
    "clip_logits",
    en="The scale is missing: cosines lie between −1 and 1, and their softmax is nearly flat.",
    zh="没有乘 logit_scale：余弦在 −1 和 1 之间，做 softmax 几乎是平的。",
)
def forgets_the_scale(image_features, text_features, logit_scale):
    return right.clip_logits(image_features, text_features, 1.0)


@mistake(
    "clip_logits",
    en="The cosines are divided by the scale, as by a temperature. logit_scale multiplies.",
    zh="除以了 logit_scale，把它当成了温度。这里是乘。",
)
def divides_by_the_scale(image_features, text_features, logit_scale):
    return right.clip_logits(image_features, text_features, 1 / logit_scale)


@mistake(
    "clip_logits",
    en="The scale is exponentiated here. What is given is the scale itself, not its logarithm.",
    zh="对 logit_scale 取了 exp。给的就是倍数本身，不是它的对数。",
)
def exponentiates_the_scale(image_features, text_features, logit_scale):
    return right.clip_logits(image_features, text_features, 2.718281828459045**logit_scale)


# clip_loss


@mistake(
    "clip_loss",
    en="Only the images look for their texts. The other direction, cross-entropy down the columns, is missing.",
    zh="只有图找文。缺了另一个方向：沿列的交叉熵。",
)
def asks_the_images_only(logits):
    return F.cross_entropy(logits, torch.arange(len(logits), device=logits.device))


@mistake(
    "clip_loss",
    en="Only the texts look for their images. The other direction, cross-entropy along the rows, is missing.",
    zh="只有文找图。缺了另一个方向：沿行的交叉熵。",
)
def asks_the_texts_only(logits):
    return asks_the_images_only(logits.T)


@mistake(
    "clip_loss",
    en="Both directions are added up. Take their mean: half as much.",
    zh="两个方向加在了一起。应取平均：一半。",
)
def adds_both_directions(logits):
    return 2 * right.clip_loss(logits)


@mistake(
    "clip_loss",
    en="exp overflows: log(softmax) of large logits is NaN or infinite. Use cross_entropy, log_softmax or logsumexp.",
    zh="exp 溢出了：logits 很大时，log(softmax) 会成为 NaN 或无穷大。请用 cross_entropy、log_softmax 或 logsumexp。",
)
def takes_the_logarithm_of_a_softmax(logits):
    exps, pairs = logits.exp(), logits.diagonal().exp()
    return -((pairs / exps.sum(1)).log().mean() + (pairs / exps.sum(0)).log().mean()) / 2


# Recommender


def _refuse_as_the_reference_does(function, *args):
    """Raise what the right function raises on these arguments. Its result is thrown away."""
    function(*args)


def _rows(x):
    return torch.arange(len(x), device=x.device)


@mistake(
    "Recommender",
    en="Attention runs over the batch: nn.TransformerEncoderLayer takes [T, B, E] unless batch_first=True. Other users change your logits, your own history does not.",
    zh="注意力跑到了批次轴上：nn.TransformerEncoderLayer 默认输入 [T, B, E]，要写 batch_first=True。结果别人的历史影响你，你自己的反而不影响。",
)
class TakesUsersForTime(right.Recommender):
    def forward(self, item_seq):
        real = item_seq != self.padding_id
        _refuse_as_the_reference_does(super().forward, item_seq)
        x = self.reader(self.items(item_seq).transpose(0, 1)).transpose(0, 1)
        return self.output(x[_rows(x), (real.sum(1) - 1).clamp(min=0)])


@mistake(
    "Recommender",
    en="Padding changes the answer. Either it is read at x[:, -1], which is padding in a short history, or padded keys are not masked.",
    zh="填充改变了结果。要么读的是 x[:, -1]，而短历史的最后一位是填充；要么没有遮住填充的键。",
)
class ReadsThePadding(right.Recommender):
    def forward(self, item_seq):
        return self.output(self.reader(self.items(item_seq), item_seq != self.padding_id)[:, -1])


@mistake(
    "Recommender",
    en="The history is a bag of items: there are no positions, so its order counts for nothing.",
    zh="历史成了一袋物品：没有位置信息，次序毫无作用。",
)
class ForgetsPositionsOfItems(right.Recommender):
    def forward(self, item_seq):
        _refuse_as_the_reference_does(super().forward, item_seq)
        real = (item_seq != self.padding_id)[..., None]
        x = self.reader.norm(self.items(item_seq)) * real
        return self.output(x.sum(1) / real.sum(1).clamp(min=1))


@mistake(
    "Recommender",
    en="Only the newest item counts: the attention mask is the wrong way round, or the history is never attended to.",
    zh="只有最近一个物品起作用：注意力掩码反了，或者根本没有对历史做注意力。",
)
class HearsTheNewestItemOnly(right.Recommender):
    def forward(self, item_seq):
        _refuse_as_the_reference_does(super().forward, item_seq)
        last = ((item_seq != self.padding_id).sum(1) - 1).clamp(min=0)
        return right.Recommender.forward(self, item_seq[_rows(item_seq), last][:, None])


@mistake(
    "Recommender",
    en="A user with no history gets NaN: a softmax over nothing but −inf. Give the row zeros, or let it see something harmless.",
    zh="没有历史的用户得到 NaN：整行都是 −inf 的 softmax。应让这一行为零，或让它看一个无害的东西。",
)
class GivesNaNToTheNewcomer(right.Recommender):
    def forward(self, item_seq):
        empty = (item_seq == self.padding_id).all(1, keepdim=True)
        return super().forward(item_seq).masked_fill(empty, torch.nan)


@mistake(
    "Recommender",
    en="The newcomer's NaN is hidden at the very end, but it has already reached the gradients. Prevent it from the start.",
    zh="新用户的 NaN 到最后才被盖住，可它已经进了梯度。要从一开始就不让它产生。",
)
class HidesTheNaNTooLate(right.Recommender):
    def forward(self, item_seq):
        real = (item_seq != self.padding_id).sum(1, keepdim=True)
        logits = super().forward(item_seq)
        return torch.where(real > 0, logits * (real / real), 0.0 * logits.detach())


@mistake(
    "Recommender",
    en="Item 0 is always taken for padding. Compare with padding_id.",
    zh="总把 0 号当作填充。应与 padding_id 比较。",
)
class AlwaysPadsWithZero(right.Recommender):
    def __init__(self, n_items, d_model=64, n_heads=4, num_layers=2, max_len=100, padding_id=0):
        super().__init__(n_items, d_model, n_heads, num_layers, max_len)


@mistake(
    "Recommender",
    en="A history longer than max_len fails inside the position table (IndexError). Check it yourself: raise ValueError.",
    zh="历史超过 max_len 时，在位置表里报错（IndexError）。请自己检查并抛出 ValueError。",
)
class LeavesItToThePositionTable(right.Recommender):
    def forward(self, item_seq):
        self.reader.positions(torch.arange(item_seq.shape[1], device=item_seq.device))  # IndexError if too long
        return super().forward(item_seq)


@mistake(
    "Recommender",
    en="A history longer than max_len is cut silently. Raise ValueError and let the caller choose what to drop.",
    zh="历史超过 max_len 时被悄悄截断。应抛出 ValueError，丢掉哪些由调用者决定。",
)
class CutsLongHistories(right.Recommender):
    def forward(self, item_seq):
        return super().forward(item_seq[:, -self.reader.positions.num_embeddings :])


@mistake(
    "Recommender",
    en="Logits come back for every place, [B, T, n_items]. Return one row per user, read at the last real item.",
    zh="每个位置都返回了 logits，[B, T, n_items]。每个用户只要一行，在最后一个真实物品处读取。",
)
class AnswersAtEveryPlace(right.Recommender):
    def forward(self, item_seq):
        return self.output(self.reader(self.items(item_seq), item_seq != self.padding_id))


@mistake(
    "Recommender",
    en="Probabilities come back. Return the logits: the loss takes the softmax itself.",
    zh="返回的是概率。应返回 logits：softmax 由损失函数来做。",
)
class ReturnsProbabilitiesOfItems(right.Recommender):
    def forward(self, item_seq):
        return super().forward(item_seq).softmax(-1)


@mistake(
    "Recommender",
    en="Dropout still acts in eval mode: F.dropout drops by default. Use nn.Dropout, or pass training=self.training.",
    zh="eval 模式下 dropout 仍在起作用：F.dropout 默认就会丢弃。请用 nn.Dropout，或传 training=self.training。",
)
class DropsItemsInEval(right.Recommender):
    def forward(self, item_seq):
        return F.dropout(super().forward(item_seq), 0.5)


# Forecaster


@mistake(
    "Forecaster",
    en="Attention runs over the batch: the layers take [T, B, E] unless batch_first=True. Other series change the forecast, its own past does not.",
    zh="注意力跑到了批次轴上：这些层默认输入 [T, B, E]，要写 batch_first=True。结果别的序列影响预测，自己的过去反而不影响。",
)
class TakesSeriesForTime(right.Forecaster):
    def forward(self, x):
        _refuse_as_the_reference_does(super().forward, x)
        read = self.reader(self.input(x).transpose(0, 1)).transpose(0, 1)
        return self.output(read[:, -1]).view(len(x), self.horizon, x.shape[2])


@mistake(
    "Forecaster",
    en="There are no positions: yesterday and last month are the same to it, and a shuffled past gives the same forecast.",
    zh="没有位置信息：昨天和上个月毫无区别，把过去打乱，预测也一样。",
)
class ForgetsPositionsOfSteps(right.Forecaster):
    def forward(self, x):
        last = right.Forecaster.forward(self, x[:, -1:])
        _refuse_as_the_reference_does(super().forward, x)
        return last + self.output(F.gelu(self.input(x)).mean(1)).view_as(last)


@mistake(
    "Forecaster",
    en="One vector for every input step, [B, T, F]: that rebuilds the past. A forecast has `horizon` steps that were never seen.",
    zh="每个输入步返回一个向量，[B, T, F]：那是重建过去。预测要给出 horizon 个没见过的步。",
)
class RebuildsThePast(right.Forecaster):
    def forward(self, x):
        return self.output(self.reader(self.input(x)))[:, :, : x.shape[2]]


@mistake(
    "Forecaster",
    en="One step is forecast and copied `horizon` times. Every step needs numbers of its own.",
    zh="只预测了一步，再复制 horizon 份。每一步都要有自己的值。",
)
class RepeatsOneStep(right.Forecaster):
    def forward(self, x):
        return super().forward(x)[:, :1].repeat(1, self.horizon, 1)


@mistake(
    "Forecaster",
    en="Only the last step counts; the past before it is never attended to.",
    zh="只有最后一步起作用；在它之前的过去根本没有被注意到。",
)
class HearsTheLastStepOnly(right.Forecaster):
    def forward(self, x):
        _refuse_as_the_reference_does(super().forward, x)
        return super().forward(x[:, -1:])


@mistake(
    "Forecaster",
    en="The forecast is read at the first step, which in a causal model has seen nothing but itself. Read the last one.",
    zh="预测读自第一步；在因果模型里，它只看得到自己。应读最后一步。",
)
class ReadsTheFirstStep(right.Forecaster):
    def forward(self, x):
        _refuse_as_the_reference_does(super().forward, x)
        return super().forward(x[:, :1])


@mistake(
    "Forecaster",
    en="The series of a batch are normalised together, so each changes all the others. Take mean and deviation per series.",
    zh="整个批次的序列一起做了归一化，于是互相影响。均值和标准差应逐条序列计算。",
)
class NormalisesOverTheBatch(right.Forecaster):
    def forward(self, x):
        return super().forward(x - x.mean((0, 1), keepdim=True))


@mistake(
    "Forecaster",
    en="Dropout still acts in eval mode. Use nn.Dropout, or pass training=self.training.",
    zh="eval 模式下 dropout 仍在起作用。请用 nn.Dropout，或传 training=self.training。",
)
class DropsStepsInEval(right.Forecaster):
    def forward(self, x):
        return F.dropout(super().forward(x), 0.5)


# graph_attention


def _scores(z, a):
    return (z @ a[: z.shape[1]])[:, None] + (z @ a[z.shape[1] :])[None, :]


def _looks(h, adj):
    return adj | torch.eye(len(h), dtype=torch.bool, device=h.device)


def _mix(scores, may_look, z):
    return torch.softmax(scores.masked_fill(~may_look, -torch.inf), -1).nan_to_num(0.0) @ z


@mistake(
    "graph_attention",
    en="The softmax runs over all nodes. Only neighbours may be seen: −inf elsewhere, before the softmax.",
    zh="softmax 做在了所有节点上。只能看邻居：其余位置在 softmax 之前填 −inf。",
)
def ignores_the_edges(h, adj, W, a, negative_slope=0.2):
    return right.graph_attention(h, torch.ones_like(adj), W, a, negative_slope)


@mistake(
    "graph_attention",
    en="Weights of nodes that are not neighbours are zeroed after the softmax, so the rest no longer sums to 1. Mask before it.",
    zh="softmax 之后才把非邻居的权重置零，其余的和就不再是 1。应在 softmax 之前遮。",
)
def zeroes_strangers_after_the_softmax(h, adj, W, a, negative_slope=0.2):
    z = h @ W.T
    return (torch.softmax(F.leaky_relu(_scores(z, a), negative_slope), -1) * _looks(h, adj)) @ z


@mistake(
    "graph_attention",
    en="There are no self-loops: a node forgets itself, and an isolated one has nothing to see.",
    zh="没有加自环：节点忘了自己，孤立的节点什么也看不到。",
)
def forgets_the_self_loops(h, adj, W, a, negative_slope=0.2):
    z = h @ W.T
    return _mix(F.leaky_relu(_scores(z, a), negative_slope), adj, z)


@mistake(
    "graph_attention",
    en="The edges are read backwards. adj[i, j] says that i may look at j.",
    zh="边的方向读反了。adj[i, j] 表示 i 可以看 j。",
)
def reads_the_edges_backwards(h, adj, W, a, negative_slope=0.2):
    return right.graph_attention(h, adj.T, W, a, negative_slope)


@mistake(
    "graph_attention",
    en="The LeakyReLU is missing, or stands after the softmax, where it does nothing. Without it the term of node i drops out.",
    zh="没有 LeakyReLU，或者放在了 softmax 之后，那里它不起作用。没有它，节点 i 那一项会在 softmax 里消掉。",
)
def forgets_the_leaky_relu(h, adj, W, a, negative_slope=0.2):
    return right.graph_attention(h, adj, W, a, 1.0)


@mistake(
    "graph_attention",
    en="The slope is not obeyed: F.leaky_relu's own default is 0.01.",
    zh="没有用 negative_slope：F.leaky_relu 自己的默认值是 0.01。",
)
def keeps_torchs_own_slope(h, adj, W, a, negative_slope=0.2):
    return right.graph_attention(h, adj, W, a, 0.01)


@mistake(
    "graph_attention",
    en="The halves of a are exchanged: the first belongs to node i, which looks, the second to node j, which is looked at.",
    zh="a 的两半用反了：前一半属于看的节点 i，后一半属于被看的节点 j。",
)
def exchanges_the_halves_of_a(h, adj, W, a, negative_slope=0.2):
    return right.graph_attention(h, adj, W, a.roll(len(a) // 2), negative_slope)


@mistake(
    "graph_attention",
    en="This is GATv2: LeakyReLU before a. GAT is first a, then LeakyReLU.",
    zh="这是 GATv2：先 LeakyReLU 再乘 a。这里要的是 GAT：先乘 a，再 LeakyReLU。",
)
def bends_before_a(h, adj, W, a, negative_slope=0.2):
    z = h @ W.T
    pairs = torch.cat([z[:, None].expand(-1, len(z), -1), z[None].expand(len(z), -1, -1)], -1)
    return _mix(F.leaky_relu(pairs, negative_slope) @ a, _looks(h, adj), z)


@mistake(
    "graph_attention",
    en="A nonlinearity is applied to the result. This head returns the plain mixture.",
    zh="对结果又做了非线性。这里直接返回混合的结果。",
)
def bends_the_result(h, adj, W, a, negative_slope=0.2):
    return F.elu(right.graph_attention(h, adj, W, a, negative_slope))


# AttentionPolicy


@mistake(
    "AttentionPolicy",
    en="[B, T, S] is read as [T, B, S]: the answer is [T, A], and out[-1] is the last episode. Say batch_first=True and take [:, -1].",
    zh="把 [B, T, S] 当成了 [T, B, S]：结果是 [T, A]，out[-1] 成了最后一个回合。请写 batch_first=True，并取 [:, -1]。",
)
class TakesEpisodesForTime(right.AttentionPolicy):
    def forward(self, history):
        return super().forward(history.transpose(0, 1))


@mistake(
    "AttentionPolicy",
    en="Attention runs over the batch: episodes see each other, and their own past does not count. Say batch_first=True.",
    zh="注意力跑到了批次轴上：各回合互相看，自己的过去却不起作用。请写 batch_first=True。",
)
class MixesEpisodes(right.AttentionPolicy):
    def forward(self, history):
        _refuse_as_the_reference_does(super().forward, history)
        return self.output(self.reader(self.input(history[:, -1:]).transpose(0, 1))[:, 0])


@mistake(
    "AttentionPolicy",
    en="There are no positions: the past is a bag of states without order.",
    zh="没有位置信息：过去成了一袋状态，分不清先后。",
)
class ForgetsPositionsOfStates(right.AttentionPolicy):
    def forward(self, history):
        _refuse_as_the_reference_does(super().forward, history)
        return super().forward(history[:, -1:]) + self.output(F.gelu(self.input(history)).mean(1))


@mistake(
    "AttentionPolicy",
    en="The attention is as wide as the state, so the heads must divide state_dim: CartPole's 4 fails with 8 heads. Project the state to d_model first.",
    zh="注意力的宽度就是状态的维数，于是头数必须整除 state_dim：CartPole 的 4 维配 8 个头就报错。请先把状态投影到 d_model。",
)
class AttendsInTheWidthOfTheState(right.AttentionPolicy):
    def __init__(self, state_dim, action_dim, d_model=32, n_heads=4, max_len=64):
        nn.MultiheadAttention(state_dim, n_heads)  # raises an error unless the heads divide state_dim
        super().__init__(state_dim, action_dim, d_model, n_heads, max_len)


@mistake(
    "AttentionPolicy",
    en="The answer is read at the first state, which in a causal model knows nothing of the present. Read the last one.",
    zh="结果读自第一个状态；在因果模型里，它对当前一无所知。应读最后一个。",
)
class ReadsTheFirstState(right.AttentionPolicy):
    def forward(self, history):
        _refuse_as_the_reference_does(super().forward, history)
        return super().forward(history[:, :1])


@mistake(
    "AttentionPolicy",
    en="Only the present state counts: this policy has no memory.",
    zh="只有当前状态起作用：这个策略没有记忆。",
)
class HearsThePresentOnly(right.AttentionPolicy):
    def forward(self, history):
        _refuse_as_the_reference_does(super().forward, history)
        return super().forward(history[:, -1:])


@mistake(
    "AttentionPolicy",
    en="`squeeze()` takes away the batch axis of a single episode. Index the axis you mean.",
    zh="只有一个回合时，`squeeze()` 把批次轴也去掉了。请只索引你要去掉的那个轴。",
)
class SqueezesTheBatchAway(right.AttentionPolicy):
    def forward(self, history):
        return super().forward(history).squeeze()


# attention_rollout


def _heads(attentions):
    return [weights.mean(1) for weights in attentions]


def _halved(weights):
    mixed = weights + torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    return mixed / mixed.sum(-1, keepdim=True)


def _product(matrices):
    result = matrices[0]
    for matrix in matrices[1:]:
        result = matrix @ result
    return result


@mistake(
    "attention_rollout",
    en="The residual is missing: half of every token stays where it is. Mix each layer half and half with the identity.",
    zh="没有考虑残差：每个词元有一半留在原处。每一层都要与单位阵各占一半。",
)
def forgets_the_residual(attentions):
    return _product(_heads(attentions))


@mistake(
    "attention_rollout",
    en="The layers are multiplied in the wrong order. The later layer reads what the earlier one wrote: later @ earlier.",
    zh="各层相乘的次序反了。后一层读的是前一层写的：后 @ 前。",
)
def multiplies_from_the_right(attentions):
    return right.attention_rollout(attentions[::-1])


@mistake(
    "attention_rollout",
    en="Rows that did not sum to 1 are not renormalised.",
    zh="和不为 1 的行没有重新归一化。",
)
def forgets_to_renormalise(attentions):
    eye = torch.eye(attentions[0].shape[-1], dtype=attentions[0].dtype, device=attentions[0].device)
    return _product([weights / 2 + eye / 2 for weights in _heads(attentions)])


@mistake(
    "attention_rollout",
    en="The strongest head is taken instead of the mean over the heads.",
    zh="取了最强的头，而不是对各头取平均。",
)
def takes_the_strongest_head(attentions):
    return _product([_halved(weights.amax(1)) for weights in attentions])


@mistake(
    "attention_rollout",
    en="The layers are averaged. Attention composes: multiply them.",
    zh="对各层取了平均。注意力是逐层复合的：应当相乘。",
)
def averages_the_layers(attentions):
    return torch.stack([_halved(weights) for weights in _heads(attentions)]).mean(0)


@mistake(
    "attention_rollout",
    en="Only the last layer is looked at. Its tokens are already mixtures of all the tokens below.",
    zh="只看了最后一层。到那里，每个词元早已是下面各词元的混合。",
)
def looks_at_the_last_layer_only(attentions):
    return right.attention_rollout(attentions[-1:])
