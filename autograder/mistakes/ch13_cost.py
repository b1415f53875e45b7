"""Chapter 13: costs that are counted too low, too high, or in the wrong unit."""

from autograder.reference import ch13_cost as right

from . import mistake

# attention_flops


@mistake(
    "attention_flops",
    en="Multiply-adds (MACs) are counted, half of what is asked. A multiplication and an addition are two FLOPs: a product of m×k and k×n takes 2mkn.",
    zh="数的是乘加（MAC），只有要求的一半。一次乘法加一次加法是两个 FLOP：m×k 与 k×n 的乘积要 2mkn 次。",
)
def counts_multiply_adds_once(batch, length, d_model):
    return right.attention_flops(batch, length, d_model) // 2


@mistake(
    "attention_flops",
    en="The projections are counted in multiply-adds (4·B·n·d²), scores and mixing in FLOPs (4·B·n²·d). Use one unit: the projections take 8·B·n·d².",
    zh="投影按乘加数（4·B·n·d²），打分和混合却按 FLOP 数（4·B·n²·d）。单位要统一：投影是 8·B·n·d²。",
)
def mixes_macs_and_flops(batch, length, d_model):
    return 4 * batch * length * d_model * (d_model + length)


@mistake(
    "attention_flops",
    en="The four projections are left out: only scores and mixing are counted. The projections take 8·B·n·d² and are the larger half while n < 2d.",
    zh="漏了四个投影，只数了打分和混合。投影要 8·B·n·d²；只要 n < 2d，它们才是大头。",
)
def forgets_the_projections(batch, length, d_model):
    return 4 * batch * length**2 * d_model


@mistake(
    "attention_flops",
    en="Three projections are counted. There are four: W_O works on every token too.",
    zh="只数了三个投影。应有四个：W_O 也要作用在每个词元上。",
)
def forgets_the_output_projection(batch, length, d_model):
    return 6 * batch * length * d_model**2 + 4 * batch * length**2 * d_model


@mistake(
    "attention_flops",
    en="The n² term is half of what it should be. Scores (QKᵀ) and mixing (AV) take 2·B·n²·d each, and masked scores are computed too.",
    zh="n² 那一项只有应有的一半。打分（QKᵀ）和混合（AV）各要 2·B·n²·d；被掩码遮住的分数同样要算。",
)
def counts_one_of_two_n_squared_products(batch, length, d_model):
    return 8 * batch * length * d_model**2 + 2 * batch * length**2 * d_model


@mistake(
    "attention_flops",
    en="The squares are exchanged: the projections square the width (n·d²), scores and mixing square the length (n²·d).",
    zh="平方放反了：投影是宽度的平方（n·d²），打分和混合是长度的平方（n²·d）。",
)
def exchanges_the_squares(batch, length, d_model):
    return 8 * batch * length**2 * d_model + 4 * batch * length * d_model**2


@mistake(
    "attention_flops",
    en="The batch is left out: this is the cost of one example.",
    zh="漏了批次：这只是一个样本的计算量。",
)
def forgets_the_batch(batch, length, d_model):
    return right.attention_flops(1, length, d_model)


@mistake(
    "attention_flops",
    en="The batch is taken for more length: (B·n)² pairs. Examples do not attend to each other: there are B·n² pairs.",
    zh="把批次当成了更长的序列：(B·n)² 对。样本之间互不注意，只有 B·n² 对。",
)
def lets_the_examples_attend_to_each_other(batch, length, d_model):
    return right.attention_flops(1, batch * length, d_model)


@mistake(
    "attention_flops",
    en="The feed-forward network is counted as well: 24·B·n·d² + 4·B·n²·d is a whole layer. Attention alone has 8·B·n·d².",
    zh="把前馈网络也数进去了：24·B·n·d² + 4·B·n²·d 是整整一层。注意力本身只有 8·B·n·d²。",
)
def counts_the_whole_layer(batch, length, d_model):
    return right.attention_flops(batch, length, d_model) + 16 * batch * length * d_model**2


@mistake(
    "attention_flops",
    en="The backward pass is counted as well, three times the forward pass in all. Only the forward pass is asked for.",
    zh="把反向传播也数进去了，总共是前向的三倍。这里只问前向。",
)
def counts_the_backward_pass_too(batch, length, d_model):
    return 3 * right.attention_flops(batch, length, d_model)


@mistake(
    "attention_flops",
    en="The additions of the four biases are counted, 4·B·n·d more. Here only matrix products count, as in PyTorch's counter.",
    zh="把四个偏置的加法也数进去了，多了 4·B·n·d。这里只数矩阵乘法，与 PyTorch 的计数器一致。",
)
def adds_the_biases(batch, length, d_model):
    return right.attention_flops(batch, length, d_model) + 4 * batch * length * d_model


@mistake(
    "attention_flops",
    en="Only the growth is left, n·d² + n²·d, without the constants 8 and 4. A count needs them.",
    zh="只剩下增长的阶 n·d² + n²·d，没有常数 8 和 4。要数出次数，常数不能丢。",
)
def drops_the_constants(batch, length, d_model):
    return batch * length * d_model * (d_model + length)


# block_parameters


@mistake(
    "block_parameters",
    en="Only the six matrices are counted. Biases and LayerNorms are parameters too.",
    zh="只数了六个矩阵。偏置和 LayerNorm 也是参数。",
)
def counts_matrices_only(d_model, d_ff):
    return 4 * d_model**2 + 2 * d_model * d_ff


@mistake(
    "block_parameters",
    en="The biases of the six linear layers are left out: 5·d_model + d_ff in all.",
    zh="漏了六个线性层的偏置：一共 5·d_model + d_ff 个。",
)
def forgets_every_bias(d_model, d_ff):
    return right.block_parameters(d_model, d_ff) - 5 * d_model - d_ff


@mistake(
    "block_parameters",
    en="4·d_model numbers are missing: the biases of W_Q, W_K, W_V and W_O, or both LayerNorms with their gain and bias. All of them are learned.",
    zh="少了 4·d_model 个数：不是漏了 W_Q、W_K、W_V、W_O 的四个偏置，就是漏了两个 LayerNorm 的增益和偏置。它们都是学来的。",
)
def forgets_four_vectors(d_model, d_ff):
    return right.block_parameters(d_model, d_ff) - 4 * d_model


@mistake(
    "block_parameters",
    en="The two biases of the feed-forward network are left out: d_ff and d_model numbers.",
    zh="漏了前馈网络的两个偏置：分别有 d_ff 个和 d_model 个数。",
)
def forgets_the_biases_of_the_feed_forward_network(d_model, d_ff):
    return right.block_parameters(d_model, d_ff) - d_ff - d_model


@mistake(
    "block_parameters",
    en="Both biases of the feed-forward network have d_ff numbers. A bias is as wide as its layer's output: d_ff, then d_model.",
    zh="前馈网络的两个偏置都算成了 d_ff 个数。偏置与那一层的输出一样宽：先是 d_ff，后是 d_model。",
)
def gives_both_inner_biases_the_inner_width(d_model, d_ff):
    return right.block_parameters(d_model, d_ff) + d_ff - d_model


@mistake(
    "block_parameters",
    en="Half of the LayerNorms is missing: there are two, and each has a gain and a bias.",
    zh="LayerNorm 少数了一半：一共有两个，每个都有增益和偏置。",
)
def counts_half_of_the_layer_norms(d_model, d_ff):
    return right.block_parameters(d_model, d_ff) - 2 * d_model


@mistake(
    "block_parameters",
    en="Three LayerNorms are counted. A block has two; the one at the end of the model belongs to no block.",
    zh="数了三个 LayerNorm。一个块只有两个；模型末尾的那个不属于任何块。",
)
def adds_a_third_layer_norm(d_model, d_ff):
    return right.block_parameters(d_model, d_ff) + 2 * d_model


@mistake(
    "block_parameters",
    en="W_O is left out. Attention has four matrices, each with a bias.",
    zh="漏了 W_O。注意力有四个矩阵，每个都带偏置。",
)
def forgets_the_output_projection_of_the_block(d_model, d_ff):
    return right.block_parameters(d_model, d_ff) - d_model**2 - d_model


@mistake(
    "block_parameters",
    en="One matrix of the feed-forward network is missing: it goes to d_ff and comes back.",
    zh="前馈网络少数了一个矩阵：先变到 d_ff，还要变回来。",
)
def counts_one_feed_forward_matrix(d_model, d_ff):
    return right.block_parameters(d_model, d_ff) - d_model * d_ff


@mistake(
    "block_parameters",
    en="Three matrices are counted in the feed-forward network. That is a gated one, as in LLaMA; this block has two.",
    zh="前馈网络数了三个矩阵。那是 LLaMA 那样的门控前馈网络；这里的块只有两个。",
)
def counts_a_gated_feed_forward_network(d_model, d_ff):
    return right.block_parameters(d_model, d_ff) + d_model * d_ff


@mistake(
    "block_parameters",
    en="d_ff is ignored: 12h² + 13h holds for d_ff = 4h only.",
    zh="没有用 d_ff：12h² + 13h 只在 d_ff = 4h 时成立。",
)
def always_takes_four_times_the_width(d_model, d_ff):
    return 12 * d_model**2 + 13 * d_model


@mistake(
    "block_parameters",
    en="The feed-forward network is left out, two thirds of the usual block.",
    zh="漏了前馈网络，它通常占整个块的三分之二。",
)
def forgets_the_feed_forward_network(d_model, d_ff):
    return 4 * d_model**2 + 8 * d_model


@mistake(
    "block_parameters",
    en="The two widths are exchanged: attention and LayerNorms are d_model wide.",
    zh="两个宽度弄反了：注意力和 LayerNorm 的宽度是 d_model。",
)
def exchanges_the_widths(d_model, d_ff):
    return right.block_parameters(d_ff, d_model)


# kv_cache_bytes


@mistake(
    "kv_cache_bytes",
    en="Keys or values are counted, not both: a factor 2 is missing.",
    zh="键和值只数了一种：少了一个因子 2。",
)
def forgets_that_keys_and_values_are_two(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(layers, kv_heads, head_dim, length, batch, bytes_per_value) // 2


@mistake(
    "kv_cache_bytes",
    en="Queries are kept as well, a factor 3. No later token asks for an old query: only keys and values stay.",
    zh="把查询也存下来了，因子成了 3。后面的词元用不到旧的查询：只存键和值。",
)
def keeps_the_queries_too(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(layers, kv_heads, head_dim, length, batch, bytes_per_value) // 2 * 3


@mistake(
    "kv_cache_bytes",
    en="kv_heads is left out: head_dim is the width of one head, and every KV head has its own keys and values.",
    zh="漏了 kv_heads：head_dim 只是一个头的宽度，每个键值头都有自己的键和值。",
)
def forgets_the_kv_heads(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(layers, 1, head_dim, length, batch, bytes_per_value)


@mistake(
    "kv_cache_bytes",
    en="32 heads are counted whatever kv_heads says. Those are the query heads of a well-known model; with GQA the cache holds fewer.",
    zh="不管 kv_heads 是多少，都按 32 个头来数。那是某个著名模型的查询头数；用了 GQA，缓存里的头更少。",
)
def counts_the_query_heads(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(layers, 32, head_dim, length, batch, bytes_per_value)


@mistake(
    "kv_cache_bytes",
    en="One layer is counted. Every layer keeps its own keys and values.",
    zh="只数了一层。每一层都要存自己的键和值。",
)
def forgets_the_layers(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(1, kv_heads, head_dim, length, batch, bytes_per_value)


@mistake(
    "kv_cache_bytes",
    en="The length is left out: this is the cost of one token.",
    zh="漏了长度：这只是一个词元的代价。",
)
def forgets_the_cached_tokens(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(layers, kv_heads, head_dim, 1, batch, bytes_per_value)


@mistake(
    "kv_cache_bytes",
    en="The batch is left out. Every example has its own past, and so its own cache.",
    zh="漏了批次。每个样本有自己的历史，也就有自己的缓存。",
)
def forgets_the_batch_of_the_cache(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(layers, kv_heads, head_dim, length, 1, bytes_per_value)


@mistake(
    "kv_cache_bytes",
    en="The length is squared. The cache grows with n; it is the attention matrix that grows with n².",
    zh="长度被平方了。缓存随 n 增长；随 n² 增长的是注意力矩阵。",
)
def squares_the_length_of_the_cache(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(layers, kv_heads, head_dim, length, batch, bytes_per_value) * length


@mistake(
    "kv_cache_bytes",
    en="bytes_per_value is ignored: it is always 2.",
    zh="没有用 bytes_per_value：总是按 2 个字节算。",
)
def always_takes_16_bits(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(layers, kv_heads, head_dim, length, batch)


@mistake(
    "kv_cache_bytes",
    en="A factor 2 too many: the 2 bytes of 16-bit values stand in the formula and are multiplied by bytes_per_value once more.",
    zh="多了一个因子 2：公式里已经写了 16 位的 2 个字节，又乘了一次 bytes_per_value。",
)
def counts_the_bytes_twice(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return 2 * right.kv_cache_bytes(layers, kv_heads, head_dim, length, batch, bytes_per_value)


@mistake(
    "kv_cache_bytes",
    en="The default is 4 bytes per value. It must be 2: a cache is usually kept in 16 bits.",
    zh="默认值是每个值 4 个字节。应为 2：缓存通常用 16 位保存。",
)
def takes_float32_for_the_default(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=4):
    return right.kv_cache_bytes(layers, kv_heads, head_dim, length, batch, bytes_per_value)


@mistake(
    "kv_cache_bytes",
    en="Bits are counted, 8 times too many. bytes_per_value is already in bytes.",
    zh="数的是比特，多了 8 倍。bytes_per_value 的单位已经是字节。",
)
def counts_bits(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return 8 * right.kv_cache_bytes(layers, kv_heads, head_dim, length, batch, bytes_per_value)


@mistake(
    "kv_cache_bytes",
    en="The answer is in GiB. Bytes are asked for, as a whole number.",
    zh="答案的单位是 GiB。要求的是字节数，一个整数。",
)
def answers_in_gibibytes(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(layers, kv_heads, head_dim, length, batch, bytes_per_value) / 2**30


@mistake(
    "kv_cache_bytes",
    en="One token is missing: n tokens have n keys and n values. The newest token attends to itself, so it is cached too.",
    zh="少了一个词元：n 个词元就有 n 个键和 n 个值。最新的词元也要看自己，所以同样在缓存里。",
)
def leaves_out_the_newest_token(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return right.kv_cache_bytes(layers, kv_heads, head_dim, length - 1, batch, bytes_per_value)


# attention_matrix_bytes


@mistake(
    "attention_matrix_bytes",
    en="This is one head of one example. Every head of every example has its own matrix: times batch, times heads.",
    zh="这只是一个样本的一个头。每个样本的每个头都有自己的矩阵：要乘以批次大小，再乘以头数。",
)
def counts_one_head_of_one_example(batch, heads, length, bytes_per_value=4):
    return right.attention_matrix_bytes(1, 1, length, bytes_per_value)


@mistake(
    "attention_matrix_bytes",
    en="The heads are left out. Narrower heads do not make smaller matrices: each is n×n.",
    zh="漏了头数。头变窄，矩阵并不变小：每个都是 n×n。",
)
def forgets_the_heads(batch, heads, length, bytes_per_value=4):
    return right.attention_matrix_bytes(batch, 1, length, bytes_per_value)


@mistake(
    "attention_matrix_bytes",
    en="The batch is left out: every example has its own matrices.",
    zh="漏了批次：每个样本都有自己的矩阵。",
)
def forgets_the_batch_of_matrices(batch, heads, length, bytes_per_value=4):
    return right.attention_matrix_bytes(1, heads, length, bytes_per_value)


@mistake(
    "attention_matrix_bytes",
    en="Numbers are counted, not bytes: multiply by bytes_per_value.",
    zh="数的是数字的个数，不是字节数：还要乘以 bytes_per_value。",
)
def counts_numbers_not_bytes(batch, heads, length, bytes_per_value=4):
    return right.attention_matrix_bytes(batch, heads, length, 1)


@mistake(
    "attention_matrix_bytes",
    en="bytes_per_value is ignored: it is always 4.",
    zh="没有用 bytes_per_value：总是按 4 个字节算。",
)
def always_takes_float32(batch, heads, length, bytes_per_value=4):
    return right.attention_matrix_bytes(batch, heads, length)


@mistake(
    "attention_matrix_bytes",
    en="The default is 2 bytes per number. Here it is 4, a float32.",
    zh="默认每个数 2 个字节。这里应是 4，即 float32。",
)
def takes_16_bits_for_the_default(batch, heads, length, bytes_per_value=2):
    return right.attention_matrix_bytes(batch, heads, length, bytes_per_value)


@mistake(
    "attention_matrix_bytes",
    en="The length is not squared: there is one number for every pair of tokens.",
    zh="长度没有平方：每一对词元都有一个数。",
)
def does_not_square_the_length(batch, heads, length, bytes_per_value=4):
    return batch * heads * length * bytes_per_value


@mistake(
    "attention_matrix_bytes",
    en="Half of the matrix is counted, n(n+1)/2. A causal mask hides scores; it frees no memory.",
    zh="只数了矩阵的一半，n(n+1)/2。因果掩码遮住的是分数，并不节省内存。",
)
def keeps_the_causal_half_only(batch, heads, length, bytes_per_value=4):
    return batch * heads * (length * (length + 1) // 2) * bytes_per_value


@mistake(
    "attention_matrix_bytes",
    en="Scores and weights are both counted, a factor 2. One matrix is asked for.",
    zh="分数和权重都数了，多了一个因子 2。这里只问一个矩阵。",
)
def keeps_scores_and_weights(batch, heads, length, bytes_per_value=4):
    return 2 * right.attention_matrix_bytes(batch, heads, length, bytes_per_value)


@mistake(
    "attention_matrix_bytes",
    en="The answer is in GiB. Bytes are asked for, as a whole number.",
    zh="答案的单位是 GiB。要求的是字节数，一个整数。",
)
def answers_in_gibibytes_of_matrix(batch, heads, length, bytes_per_value=4):
    return right.attention_matrix_bytes(batch, heads, length, bytes_per_value) / 2**30


@mistake(
    "attention_matrix_bytes",
    en="The answer is in GB, billions of bytes (a GiB is 7 % more). Bytes are asked for, as a whole number.",
    zh="答案的单位是 GB，即十亿字节（1 GiB 比它多 7 %）。要求的是字节数，一个整数。",
)
def answers_in_gigabytes(batch, heads, length, bytes_per_value=4):
    return right.attention_matrix_bytes(batch, heads, length, bytes_per_value) / 10**9
