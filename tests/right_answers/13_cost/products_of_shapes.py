"""Shapes first; a count is the product of a shape."""

from math import prod


def attention_flops(batch, length, d_model):
    products = [(batch, length, d_model, d_model)] * 4
    products += [(batch, length, d_model, length), (batch, length, length, d_model)]
    return sum(2 * prod(shape) for shape in products)


def block_parameters(d_model, d_ff):
    shapes = [(d_model, d_model), (d_model,)] * 4
    shapes += [(d_ff, d_model), (d_ff,), (d_model, d_ff), (d_model,)]
    shapes += [(d_model,)] * 4
    return sum(map(prod, shapes))


def kv_cache_bytes(layers, kv_heads, head_dim, length, batch=1, bytes_per_value=2):
    return prod((2, layers, batch, kv_heads, length, head_dim, bytes_per_value))


def attention_matrix_bytes(batch, heads, length, bytes_per_value=4):
    return prod((batch, heads, length, length, bytes_per_value))
