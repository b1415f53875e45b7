"""Build an autograd graph of a million nodes, whose release recurses in C. It must cost only itself."""


def masked_attention(q, k, v, mask):
    for _ in range(100_000):
        q = q + 0
    return q, q
