"""The formulas as the page states them."""


def attention_flops(batch, length, d_model):
    return 8 * batch * length * d_model**2 + 4 * batch * length**2 * d_model


def block_parameters(d_model, d_ff):
    return 4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff


def kv_cache_bytes(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return 2 * batch * length * layers * kv_heads * head_dim * bytes_per_value


def attention_matrix_bytes(batch, heads, length, bytes_per_value=4):
    return batch * heads * length**2 * bytes_per_value
