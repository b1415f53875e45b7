"""Chapter 18: for each task the given code itself, repairs that do not repair, and inputs that break nothing.

The first mistake of each repair is the code that the notebook shows as `given_NN`, word for word.
"""

import torch
import torch.nn.functional as F

from autograder.reference import ch18_errata_hunt as right

from . import mistake

# 01: transpose


@mistake(
    "repair_01",
    en="This is the given code as it was: axes 0 and 1 of the keys are exchanged. With a batch in front, the last two are meant.",
    zh="这就是原来给出的代码：交换的是键的第 0、1 轴。前面有批次轴时，应交换最后两个轴。",
)
def multiplies_the_wrong_axes(q, k, v):
    scores = q @ k.transpose(0, 1) / q.shape[-1] ** 0.5
    return torch.softmax(scores, -1) @ v


@mistake(
    "repair_01",
    en="The batch was flattened into one long sequence: every sequence now reads all the others.",
    zh="批次被拍平成了一条长序列：每条序列都读到了别的序列。",
)
def lets_sequences_see_each_other(q, k, v):
    out = right.repair_01(q.flatten(0, -2), k.flatten(0, -2), v.flatten(0, -2))
    return out.reshape(*q.shape[:-1], v.shape[-1])


@mistake(
    "repair_01",
    en="All axes of the keys are reversed, as `.T` does. Exchange only the last two.",
    zh="把键的所有轴都颠倒了（`.T` 就是这样）。应只交换最后两个轴。",
)
def reverses_all_axes(q, k, v):
    scores = q @ k.permute(*reversed(range(k.dim()))) / q.shape[-1] ** 0.5
    return torch.softmax(scores, -1) @ v


@mistake(
    "break_01",
    en="Without a batch axis, axes 0 and 1 are the last two, and the code is right.",
    zh="没有批次轴时，第 0、1 轴就是最后两个轴，代码是对的。",
)
def hunts_without_a_batch():
    return right.qkv()


@mistake(
    "break_01",
    en="The exchanged axes do not fit, and the code raises an error. Which sizes must be equal so that it does not?",
    zh="交换后的轴对不上，代码会报错。要让它不报错，哪些大小必须相等？",
)
def hunts_with_sizes_that_crash():
    return right.qkv(2)


# 02: the empty row


@mistake(
    "repair_02",
    en="This is the given code as it was: a row of nothing but −inf becomes NaN. A query that may look nowhere gets 0.",
    zh="这就是原来给出的代码：整行都是 −inf 会变成 NaN。什么都不能看的查询应得到 0。",
)
def lets_an_empty_row_become_nan(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)
    return weights @ v, weights


@mistake(
    "repair_02",
    en="Only the output was cleaned: the weights of the empty row are still NaN.",
    zh="只清理了输出：空行的权重仍是 NaN。",
)
def cleans_the_output_alone(q, k, v, mask):
    out, weights = lets_an_empty_row_become_nan(q, k, v, mask)
    return out.nan_to_num(0.0), weights


@mistake(
    "repair_02",
    en="A large negative number instead of −inf: in an empty row all scores are equal again, and the forbidden keys share the weight.",
    zh="用很大的负数代替 −inf：空行里的分数又全都相等，被禁止的键反而平分了权重。",
)
def shares_an_empty_row_out(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), -1)
    return weights @ v, weights


@mistake(
    "repair_02",
    en="The values are right and the gradients are NaN: −inf was added to the scores of the empty row. Fill it in, or leave that row finite.",
    zh="数值对了，梯度却是 NaN：−inf 被加到了空行的分数上。应当填充，或让那一行保持有限。",
)
def keeps_nan_in_the_gradient(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    bias = torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    shares = (scores + bias - (scores + bias).amax(-1, keepdim=True)).exp()
    weights = (shares / shares.sum(-1, keepdim=True)).nan_to_num(0.0)
    return weights @ v, weights


@mistake(
    "break_02",
    en="Every query may look somewhere, and then −inf does what it should.",
    zh="每个查询都有可看的键，这时 −inf 正好管用。",
)
def hunts_without_an_empty_row():
    return {**right.qkv(2), "mask": torch.ones(2, 3, 5, dtype=torch.bool).tril(2)}


# 03: minus a billion


@mistake(
    "repair_03",
    en="This is the given code as it was: where all keys are forbidden, −1e9 everywhere is the same as nothing, and the padding is averaged.",
    zh="这就是原来给出的代码：所有键都被禁止时，处处填 −1e9 等于没填，结果是对填充取平均。",
)
def averages_the_padding_of_an_empty_sequence(q, k, v, lengths):
    real = torch.arange(k.shape[-2], device=k.device) < lengths[:, None, None]
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(~real, -1e9), -1) @ v


@mistake(
    "repair_03",
    en="An empty sequence was given its first token of padding to look at. It has nothing to look at, and gets 0.",
    zh="空序列被分到了第一个填充词元。它没有任何可看的，应得到 0。",
)
def gives_an_empty_sequence_one_token(q, k, v, lengths):
    return right.repair_03(q, k, v, lengths.clamp(min=1))


@mistake(
    "repair_03",
    en="−inf instead of −1e9 turns the average of an empty sequence into NaN. It must be 0.",
    zh="把 −1e9 换成 −inf，空序列的平均值就成了 NaN。应为 0。",
)
def turns_an_empty_sequence_into_nan(q, k, v, lengths):
    real = torch.arange(k.shape[-2], device=k.device) < lengths[:, None, None]
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(~real, -torch.inf), -1) @ v


@mistake(
    "break_03",
    en="Every sequence has at least one real token, and next to its score −1e9 is as good as −inf.",
    zh="每条序列至少有一个真实词元；和它的分数相比，−1e9 与 −inf 一样好用。",
)
def hunts_without_an_empty_sequence():
    return {**right.qkv(2), "lengths": torch.tensor([4, 1])}


# 04: a mask that is added


@mistake(
    "repair_04",
    en="This is the given code as it was: a float mask of 0 and 1 is added to the scores, so that nothing is forbidden. Ask which entries are not 0.",
    zh="这就是原来给出的代码：0/1 的浮点掩码被加到了分数上，什么也没禁止。应先问哪些元素不为 0。",
)
def adds_the_mask(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@mistake(
    "repair_04",
    en="The mask is inverted: 1 means keep.",
    zh="掩码反了：1 表示保留。",
)
def inverts_the_mask(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask == 0)


@mistake(
    "repair_04",
    en="The forbidden scores were multiplied by 0, and a score of 0 gets weight like any other. Forbid with −inf, before the softmax.",
    zh="被禁止的分数乘成了 0，而分数 0 与别的分数一样会分到权重。应在 softmax 之前用 −inf 禁止。",
)
def multiplies_the_scores(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return torch.softmax(scores * mask, -1) @ v


@mistake(
    "break_04",
    en="The mask forbids nothing (or is the same all along each row), and adding the same number to a whole row changes nothing.",
    zh="掩码什么也没禁止（或每一行处处相同），给整行加同一个数不会有任何变化。",
)
def hunts_with_a_mask_of_ones():
    return {**right.qkv(2), "mask": torch.ones(3, 5)}


# 05: upper left


@mistake(
    "repair_05",
    en="This is the given code as it was: `is_causal` starts its triangle in the upper left corner, so a single new query sees key 0 alone.",
    zh="这就是原来给出的代码：`is_causal` 的三角形从左上角开始，于是单个新查询只看得到键 0。",
)
def aligns_to_the_upper_left(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@mistake(
    "repair_05",
    en="One query is right now, but two or more are still aligned to the upper left.",
    zh="单个查询对了，两个以上仍对齐左上角。",
)
def repairs_a_single_query_alone(q, k, v):
    if q.shape[-2] == 1:
        return F.scaled_dot_product_attention(q, k, v)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@mistake(
    "repair_05",
    en="With a cache the mask was left out for all queries, and the earlier ones see the future.",
    zh="有缓存时干脆不用掩码，靠前的查询就看到了未来。",
)
def drops_the_mask_with_a_cache(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[-2] == k.shape[-2])


@mistake(
    "break_05",
    en="As many queries as keys: the upper left and the lower right corner are the same triangle.",
    zh="查询和键一样多：左上对齐与右下对齐是同一个三角形。",
)
def hunts_with_a_square():
    return right.qkv(2, lq=5)


# 06: two rules, one obeyed


@mistake(
    "repair_06",
    en="This is the given code as it was: when it is causal, the mask is thrown away. Both must allow a key.",
    zh="这就是原来给出的代码：因果时，掩码被丢掉了。两条规则都允许，才可以看。",
)
def forgets_the_mask_when_causal(q, k, v, mask, causal):
    allowed = mask
    if causal:
        allowed = torch.ones_like(mask).tril(mask.shape[-1] - mask.shape[-2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


@mistake(
    "repair_06",
    en="Either rule is enough to allow a key. Both must allow it: combine them with &.",
    zh="只要一条规则允许就放行了。必须两条都允许：用 & 合并。",
)
def allows_what_either_allows(q, k, v, mask, causal):
    if causal:
        mask = mask | torch.ones_like(mask).tril(mask.shape[-1] - mask.shape[-2])
    return right.attend(q, k, v, mask)[0]


@mistake(
    "repair_06",
    en="The mask is obeyed and `causal` is not.",
    zh="遵守了掩码，却没有理会 `causal`。",
)
def forgets_to_be_causal(q, k, v, mask, causal):
    return right.attend(q, k, v, mask)[0]


@mistake(
    "break_06",
    en="Either it is not causal, or the mask forbids nothing in the past: then there is no second rule to forget.",
    zh="要么不是因果，要么掩码没有禁止任何过去的键：那就没有第二条规则可忘。",
)
def hunts_with_one_rule():
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[:, 0] = False
    return {**right.qkv(2), "mask": mask, "causal": False}


# 07: a bias that cannot grow


@mistake(
    "repair_07",
    en="This is the given code as it was: the bias is filled in place, and a tensor [Lq, Lk] cannot take in a mask with more axes.",
    zh="这就是原来给出的代码：偏置是原地填充的，而 [Lq, Lk] 的张量装不下轴更多的掩码。",
)
def cannot_widen_its_bias(q, k, v, mask):
    bias = torch.zeros(q.shape[-2], k.shape[-2], dtype=q.dtype, device=q.device)
    bias.masked_fill_(~mask, -torch.inf)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return torch.softmax(scores + bias, -1) @ v


@mistake(
    "repair_07",
    en="The first mask was used for all. Each sequence, and each head, has its own.",
    zh="所有人都用了第一个掩码。每条序列、每个头都有自己的掩码。",
)
def uses_the_first_mask_for_all(q, k, v, mask):
    return right.attend(q, k, v, mask.reshape(-1, *mask.shape[-2:])[0])[0]


@mistake(
    "repair_07",
    en="The mask of the first head was used for all heads of a sequence.",
    zh="每条序列的所有头都用了第一个头的掩码。",
)
def uses_the_first_heads_mask(q, k, v, mask):
    return right.attend(q, k, v, mask if mask.dim() == 2 else mask[:, :1])[0]


@mistake(
    "break_07",
    en="A flat mask [Lq, Lk] fits into the bias.",
    zh="二维掩码 [Lq, Lk] 装得进偏置。",
)
def hunts_with_a_flat_mask():
    return {**right.qkv(2, 7), "mask": torch.ones(3, 5, dtype=torch.bool).tril(2)}


# 08: weights after dropout


@mistake(
    "repair_08",
    en="This is the given code as it was: the weights come back after dropout, and their rows no longer add up to 1. Return them as they were before.",
    zh="这就是原来给出的代码：返回的是 dropout 之后的权重，各行之和不再是 1。应返回 dropout 之前的权重。",
)
def returns_the_dropped_weights(q, k, v, p, training):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    weights = F.dropout(torch.softmax(scores, -1), p, training)
    return weights @ v, weights


@mistake(
    "repair_08",
    en="Nothing is dropped any more. The output must still use the dropped weights.",
    zh="什么也不丢弃了。输出仍应使用丢弃后的权重。",
)
def never_drops(q, k, v, p, training):
    return right.attend(q, k, v)


@mistake(
    "break_08",
    en="Nothing is dropped: p is 0, or it is not training.",
    zh="什么也没有丢弃：p 为 0，或者不在训练。",
)
def hunts_outside_training():
    return {**right.qkv(), "p": 0.5, "training": False}


# 09: dropout forever


@mistake(
    "repair_09",
    en="This is the given code as it was: `dropout_p` always acts. Pass 0 when it is not training.",
    zh="这就是原来给出的代码：`dropout_p` 总是起作用。不训练时应传入 0。",
)
def drops_outside_training(q, k, v, p, training):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=p)


@mistake(
    "repair_09",
    en="Now nothing is ever dropped, in training either.",
    zh="现在连训练时也什么都不丢弃了。",
)
def drops_nothing_at_all(q, k, v, p, training):
    return F.scaled_dot_product_attention(q, k, v)


@mistake(
    "repair_09",
    en="The condition is inverted: it drops outside training and never in training.",
    zh="条件写反了：不训练时丢弃，训练时反而不丢。",
)
def drops_at_the_wrong_time(q, k, v, p, training):
    return right.repair_09(q, k, v, p, not training)


@mistake(
    "break_09",
    en="In training the code does what it is asked to, and with p = 0 there is nothing to drop.",
    zh="训练时代码照要求做了；p = 0 时又没有可丢弃的。",
)
def hunts_in_training():
    return {**right.qkv(2), "p": 0.5, "training": True}


# 10: a rate that never arrives


@mistake(
    "repair_10",
    en="This is the given code as it was: `p` is not passed on, and the default of 0.1 acts whatever you ask for.",
    zh="这就是原来给出的代码：`p` 没有传下去，无论要求多少，起作用的都是默认值 0.1。",
)
def forgets_the_rate(q, k, v, p, training):
    def attention(q, k, v, training, p=0.1):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return F.dropout(torch.softmax(scores, -1), p, training) @ v

    return attention(q, k, v, training)


@mistake(
    "repair_10",
    en="`p or 0.1` takes a rate of 0 for a missing one.",
    zh="`p or 0.1` 把 0 当成了没有给。",
)
def takes_zero_for_missing(q, k, v, p, training):
    return right.repair_10(q, k, v, p or 0.1, training)


@mistake(
    "repair_10",
    en="The rate arrives, but now it also acts outside training.",
    zh="比率传到了，但不训练时它也起作用了。",
)
def forgets_whether_it_trains(q, k, v, p, training):
    return right.repair_10(q, k, v, p, True)


@mistake(
    "break_10",
    en="Outside training the rate does not matter, and in training 0.1 is what the code uses anyway.",
    zh="不训练时比率无所谓；训练时 0.1 正是代码本来就用的值。",
)
def hunts_with_the_default_rate():
    return {**right.qkv(2), "p": 0.1, "training": True}


# 11: a view too far


@mistake(
    "repair_11",
    en="This is the given code as it was: one reshape gives the right shape and the wrong numbers. First cut the features, then move the axis.",
    zh="这就是原来给出的代码：一次 reshape 形状对了，数字全错了。先切特征，再移动轴。",
)
def cuts_in_the_wrong_order(x, num_heads):
    batch, length, width = x.shape
    return x.reshape(batch, num_heads, length, width // num_heads)


@mistake(
    "repair_11",
    en="The features were dealt out in turn, one to each head. A head takes a run of neighbouring columns.",
    zh="特征被轮流发给各个头。一个头应取相邻的一段列。",
)
def deals_features_out_in_turn(x, num_heads):
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


@mistake(
    "repair_11",
    en="The heads were cut correctly but left after the tokens: [B, L, H, D] instead of [B, H, L, D].",
    zh="头切对了，却留在词元之后：得到 [B, L, H, D]，应为 [B, H, L, D]。",
)
def leaves_the_heads_behind(x, num_heads):
    return x.unflatten(-1, (num_heads, -1))


@mistake(
    "break_11",
    en="With one head or one token (or numbers that repeat) there is no order to get wrong.",
    zh="只有一个头或一个词元时（或数字重复时），没有顺序可言，也就错不了。",
)
def hunts_with_one_head():
    return {"x": right.numbers(2, 5, 12), "num_heads": 1}


# 12: the way back


@mistake(
    "repair_12",
    en="This is the given code as it was: the axes are H, B, T, D when they are merged, so one row holds pieces of different tokens.",
    zh="这就是原来给出的代码：合并时轴的顺序是 H, B, T, D，于是一行里装的是不同词元的碎片。",
)
def glues_heads_of_different_tokens(heads):
    batch, count, length, width = heads.shape
    return heads.transpose(0, 1).reshape(length, batch, count * width)


@mistake(
    "repair_12",
    en="Time and batch were not exchanged before the reshape, which only looks right from outside.",
    zh="reshape 之前没有交换时间轴和批次轴，只是形状看着对。",
)
def mixes_time_and_batch(heads):
    batch, count, length, width = heads.shape
    return heads.transpose(1, 2).reshape(length, batch, count * width)


@mistake(
    "repair_12",
    en="The batch comes first here. The result should be [T, B, H·D].",
    zh="这是批次在前。结果应为 [T, B, H·D]。",
)
def puts_the_batch_first(heads):
    return heads.transpose(1, 2).flatten(2)


@mistake(
    "break_12",
    en="Two of B, H and T are 1 (or the numbers repeat), and then there is nothing to confuse.",
    zh="B、H、T 中有两个是 1（或数字重复），没有什么可弄混的。",
)
def hunts_with_one_token_and_one_head():
    return {"heads": right.numbers(2, 1, 1, 4)}


# 13: attention among heads


@mistake(
    "repair_13",
    en="This is the given code as it was: the heads are [B, T, H, D], so each token attends over its own heads and never sees another token.",
    zh="这就是原来给出的代码：头的形状是 [B, T, H, D]，每个词元都在自己的各个头之间做注意力，从来看不到别的词元。",
)
def attends_over_its_own_heads(x, num_heads):
    length, batch, width = x.shape
    heads = x.reshape(length, batch, num_heads, width // num_heads).transpose(0, 1)
    scores = heads @ heads.transpose(-2, -1) / (width // num_heads) ** 0.5
    mixed = torch.softmax(scores, -1) @ heads
    return mixed.transpose(0, 1).reshape(length, batch, width)


@mistake(
    "repair_13",
    en="The split is right now, and the way back is still the old one: the pieces of different tokens are glued together.",
    zh="拆分对了，合并却还是老样子：不同词元的碎片被粘在了一起。",
)
def merges_as_before(x, num_heads):
    length, batch, width = x.shape
    heads = x.reshape(length, batch, num_heads, width // num_heads).permute(1, 2, 0, 3)
    return right.attend(heads, heads, heads)[0].transpose(0, 1).reshape(length, batch, width)


@mistake(
    "repair_13",
    en="Time and batch changed places: the sequences of a batch now attend to each other.",
    zh="时间轴和批次轴换了位：同一批次的序列在互相注意。",
)
def attends_over_the_batch(x, num_heads):
    return right.repair_13(x.transpose(0, 1), num_heads).transpose(0, 1)


@mistake(
    "break_13",
    en="One token with one head (or heads and tokens that are all alike): nothing can be mixed the wrong way.",
    zh="一个词元、一个头（或所有的头和词元都一样）：没有什么能混错。",
)
def hunts_with_a_single_token():
    return {"x": right.numbers(1, 2, 4), "num_heads": 1}


# 14: tokens out of nothing


@mistake(
    "repair_14",
    en="This is the given code as it was: when the heads do not divide the width, −1 lets other tokens appear. Raise ValueError.",
    zh="这就是原来给出的代码：头数不能整除宽度时，−1 会变出别的词元来。应抛出 ValueError。",
)
def invents_tokens(x, num_heads):
    batch, _, width = x.shape
    size = width // num_heads
    return x.reshape(batch, -1, num_heads, size).transpose(1, 2)


@mistake(
    "repair_14",
    en="The columns that do not fit are thrown away silently. Raise ValueError.",
    zh="装不下的列被悄悄扔掉了。应抛出 ValueError。",
)
def throws_columns_away(x, num_heads):
    return right.repair_11(x[..., : x.shape[-1] // num_heads * num_heads], num_heads)


@mistake(
    "repair_14",
    en="It refuses, but not with ValueError: `assert` raises AssertionError, and `python -O` removes it.",
    zh="它拒绝了，但不是 ValueError：`assert` 抛出 AssertionError，而且 `python -O` 会去掉它。",
)
def asserts(x, num_heads):
    assert x.shape[-1] % num_heads == 0, "heads do not divide the width"
    return right.repair_11(x, num_heads)


@mistake(
    "break_14",
    en="The heads divide the width, and the code is right.",
    zh="头数能整除宽度，代码是对的。",
)
def hunts_with_heads_that_divide():
    return {"x": right.numbers(2, 5, 12), "num_heads": 3}


@mistake(
    "break_14",
    en="The heads do not divide, but the numbers do not fit either, and the code raises an error. When do L·E numbers make whole tokens of H·(E // H)?",
    zh="头数不能整除，可是数字也凑不齐，代码就报错了。L·E 个数在什么时候能凑成整数个长为 H·(E // H) 的词元？",
)
def hunts_with_numbers_that_do_not_fit():
    return {"x": right.numbers(2, 5, 10), "num_heads": 3}


# 15: the batch on the heads


@mistake(
    "repair_15",
    en="This is the given code as it was: a mask [B, Lq, Lk] lines up with the heads. It needs an axis of size 1 for them.",
    zh="这就是原来给出的代码：掩码 [B, Lq, Lk] 对到了头的轴上。要为头插入一个大小为 1 的轴。",
)
def lays_the_batch_on_the_heads(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1) @ v


@mistake(
    "repair_15",
    en="One mask for the whole batch: each sequence has its own.",
    zh="整个批次用了同一个掩码：每条序列都有自己的。",
)
def uses_one_mask_for_the_batch(q, k, v, mask):
    return right.attend(q, k, v, mask[0])[0]


@mistake(
    "repair_15",
    en="Only what every sequence may see is allowed. Each sequence has its own mask.",
    zh="只允许所有序列都能看的键。每条序列应有自己的掩码。",
)
def allows_what_all_allow(q, k, v, mask):
    return right.attend(q, k, v, mask.all(0))[0]


@mistake(
    "break_15",
    en="All sequences have the same mask (or there is only one of each), so it does not matter where the mask lands.",
    zh="所有序列的掩码都一样（或各只有一个），掩码落到哪里都无所谓。",
)
def hunts_with_the_same_mask_for_all():
    return {**right.qkv(2, 2), "mask": torch.ones(2, 3, 5, dtype=torch.bool).tril(2)}


@mistake(
    "break_15",
    en="With more heads than sequences the shapes do not fit, and the code raises an error.",
    zh="头数与序列数不同，形状对不上，代码会报错。",
)
def hunts_with_more_heads_than_sequences():
    return {**right.qkv(2, 7), "mask": torch.ones(2, 3, 5, dtype=torch.bool).tril(2)}


# 16: the queries on the heads


@mistake(
    "repair_16",
    en="This is the given code as it was: `unsqueeze(1)` is made for three axes. A flat mask becomes [Lq, 1, Lk], and its queries land on the heads.",
    zh="这就是原来给出的代码：`unsqueeze(1)` 是为三个轴准备的。二维掩码会变成 [Lq, 1, Lk]，查询落到了头的轴上。",
)
def lays_the_queries_on_the_heads(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask.unsqueeze(1), -torch.inf)
    return torch.softmax(scores, -1) @ v


@mistake(
    "repair_16",
    en="Flat masks work now, and masks [B, Lq, Lk] no longer do.",
    zh="二维掩码可以了，[B, Lq, Lk] 的掩码却不行了。",
)
def knows_flat_masks_alone(q, k, v, mask):
    return right.attend(q, k, v, mask[None, None])[0]


@mistake(
    "repair_16",
    en="No axis is added at all: flat masks work, and a mask [B, Lq, Lk] lands on the heads.",
    zh="一个轴也没有加：二维掩码对了，[B, Lq, Lk] 的掩码却落到了头上。",
)
def adds_no_axis(q, k, v, mask):
    return right.attend(q, k, v, mask)[0]


@mistake(
    "break_16",
    en="A mask with three axes is what the code was written for (and a mask whose rows are all alike suits any axis).",
    zh="三个轴的掩码正是这段代码所期望的（各行都一样的掩码则落到哪个轴上都行）。",
)
def hunts_with_three_axes():
    return {**right.qkv(2, 7), "mask": torch.ones(2, 3, 5, dtype=torch.bool).tril(2)}


@mistake(
    "break_16",
    en="If the number of queries differs from the number of heads, the code raises an error.",
    zh="查询数与头数不同，代码会报错。",
)
def hunts_with_fewer_queries_than_heads():
    return {**right.qkv(2, 7), "mask": torch.ones(3, 5, dtype=torch.bool).tril(2)}


# 17: the loudest caption


@mistake(
    "repair_17",
    en="This is the given code as it was: without normalising, a long vector wins whatever its direction.",
    zh="这就是原来给出的代码：没有归一化，谁的向量长谁就赢，不管方向。",
)
def prefers_long_captions(images, texts):
    return (images @ texts.T).argmax(-1)


@mistake(
    "repair_17",
    en="The features are normalised over the captions. Each caption needs length 1: normalise along the last axis.",
    zh="沿着不同描述的方向做了归一化。每个描述的向量长度应为 1：沿最后一个轴归一化。",
)
def normalises_across_the_captions(images, texts):
    return (F.normalize(images, dim=0) @ F.normalize(texts, dim=0).T).argmax(-1)


@mistake(
    "repair_17",
    en="The captions were divided by the square of their length: now the shortest one wins.",
    zh="描述除以了长度的平方：这下最短的赢。",
)
def prefers_short_captions(images, texts):
    return (images @ (texts / texts.square().sum(-1, keepdim=True)).T).argmax(-1)


@mistake(
    "break_17",
    en="Here the best direction wins with or without normalising. Let the right caption be short and a wrong one long.",
    zh="这里方向最好的，归不归一化都赢。让对的描述短一些，让一个错的长一些。",
)
def hunts_with_captions_of_one_length():
    return {"images": right.numbers(3, 4), "texts": F.normalize(right.numbers(5, 4, seed=1), dim=-1)}


# 18: users read each other


@mistake(
    "repair_18",
    en="This is the given code as it was: the layer wants time first, and it got the users: they attend to each other and not to their own history.",
    zh="这就是原来给出的代码：这一层要的是时间在前，拿到的却是用户在前：用户在互相注意，而不是看自己的历史。",
)
def reads_the_batch_as_time(items):
    def layer(x):  # self-attention, time first: [T, B, E]
        scores = torch.einsum("tbe,sbe->bts", x, x) / x.shape[-1] ** 0.5
        return torch.einsum("bts,sbe->tbe", torch.softmax(scores, -1), x)

    return layer(items)[:, -1]


@mistake(
    "repair_18",
    en="`reshape` gives the shape of time first, but not its content: transpose.",
    zh="`reshape` 只给了「时间在前」的形状，没有给内容：应当转置。",
)
def reshapes_instead_of_transposing(items):
    batch, length, width = items.shape
    return right.repair_18(items.reshape(length, batch, width).transpose(0, 1))


@mistake(
    "repair_18",
    en="After transposing, the last item is `[-1]`. `[:, -1]` is the last user.",
    zh="转置之后，最后一个物品是 `[-1]`；`[:, -1]` 是最后一个用户。",
)
def takes_the_last_user(items):
    return right.attend(items, items, items)[0].transpose(0, 1)[:, -1]


@mistake(
    "repair_18",
    en="This is the first item of each user. The last one is at −1.",
    zh="这是每个用户的第一个物品。最后一个在 −1 处。",
)
def takes_the_first_item(items):
    return right.attend(items, items, items)[0][:, 0]


@mistake(
    "break_18",
    en="One user with one item (or users and items that are all alike): there is no other user to read.",
    zh="一个用户、一个物品（或所有用户、物品都一样）：没有别人可读。",
)
def hunts_with_a_single_user():
    return {"items": right.numbers(1, 1, 4)}
