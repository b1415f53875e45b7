"""NumPy's 64-bit whole numbers, turned into Python's at the end."""

import numpy as np


def count(*factors):
    return int(np.prod(np.array(factors, dtype=np.int64)))


def attention_flops(batch, length, d_model):
    powers = np.array([length * d_model**2, length**2 * d_model], dtype=np.int64)
    return int(batch * np.array([8, 4]) @ powers)


def block_parameters(d_model, d_ff):
    return count(d_model, d_model + 1) * 4 + count(d_ff, d_model + 1) + count(d_ff + 1, d_model) + count(2, 2, d_model)


def kv_cache_bytes(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return count(2, layers, kv_heads, head_dim, length, batch, bytes_per_value)


def attention_matrix_bytes(batch, heads, length, bytes_per_value=4):
    return count(batch, heads, length, length, bytes_per_value)
