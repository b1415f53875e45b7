"""Factored as far as it goes; one cost is written with the help of another."""


def attention_flops(batch, length, d_model):
    return 4 * batch * length * d_model * (2 * d_model + length)


def block_parameters(d_model, d_ff):
    return (4 * d_model + 2 * d_ff + 9) * d_model + d_ff


def attention_matrix_bytes(batch, heads, length, bytes_per_value=4):
    return int(batch * heads * length * length * bytes_per_value)


def kv_cache_bytes(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    per_token = 2 * layers * kv_heads * head_dim * bytes_per_value
    tokens = batch * length
    return round(per_token * tokens)
