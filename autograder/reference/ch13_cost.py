"""Chapter 13: what attention costs, counted exactly. Every count is a whole number."""


def attention_flops(batch, length, d_model):
    """Additions and multiplications in the matrix products of one forward pass of multi-head self-attention.

    A product of (m, k) and (k, n) counts 2mkn. Four projections, then scores and mixing. The number of heads drops out:
    h heads of width d_model / h do the work of one head of width d_model.
    """
    projections = 4 * (2 * batch * length * d_model * d_model)
    scores_and_mixing = 2 * (2 * batch * length * length * d_model)
    return projections + scores_and_mixing


def block_parameters(d_model, d_ff):
    """Learned numbers of a block: W_Q, W_K, W_V, W_O, two feed-forward layers, two LayerNorms, all with biases."""
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = (d_model * d_ff + d_ff) + (d_ff * d_model + d_model)
    norms = 2 * (d_model + d_model)
    return attention + feed_forward + norms


def kv_cache_bytes(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    """Memory for the keys and the values of every token in every layer. Query heads do not count."""
    return 2 * layers * kv_heads * head_dim * length * batch * bytes_per_value


def attention_matrix_bytes(batch, heads, length, bytes_per_value=4):
    """Memory for the attention weights of one layer, if they are all kept at once."""
    return batch * heads * length * length * bytes_per_value
