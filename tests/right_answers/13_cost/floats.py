"""In floating point: exact below 2**53."""


def attention_flops(batch, length, d_model):
    tokens = float(batch * length)
    return 8.0 * tokens * d_model**2 + 4.0 * tokens * length * d_model


def block_parameters(d_model, d_ff):
    h = float(d_model)
    return 4 * (h * h + h) + h * d_ff + d_ff + d_ff * h + h + 4 * h


def kv_cache_bytes(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    bits = 8.0 * bytes_per_value
    return 2.0 * layers * kv_heads * head_dim * length * batch * bits / 8.0


def attention_matrix_bytes(batch, heads, length, bytes_per_value=4):
    return float(batch) * heads * length * length * bytes_per_value
