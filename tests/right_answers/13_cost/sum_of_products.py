"""Every matrix product and every layer by itself, then added up."""


def matmul(rows, inner, columns):
    return 2 * rows * inner * columns


def linear(wide_in, wide_out):
    return wide_in * wide_out + wide_out


def attention_flops(batch, length, d_model):
    total = 0
    for _ in ("q", "k", "v", "o"):
        total += matmul(batch * length, d_model, d_model)
    for _ in range(batch):
        total += matmul(length, d_model, length)
        total += matmul(length, length, d_model)
    return total


def block_parameters(d_model, d_ff):
    layers = [linear(d_model, d_model)] * 4 + [linear(d_model, d_ff), linear(d_ff, d_model)]
    norms = [d_model, d_model] * 2
    return sum(layers) + sum(norms)


def kv_cache_bytes(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    one_vector = head_dim * bytes_per_value
    one_token = layers * kv_heads * (one_vector + one_vector)
    return one_token * length * batch


def attention_matrix_bytes(batch, heads, length, bytes_per_value=4):
    pairs = length * length
    return sum(heads * pairs * bytes_per_value for _ in range(batch))
