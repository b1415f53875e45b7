"""Hoard small objects until there is no memory left. It must be refused."""


def causal_mask(q_len, k_len=None):
    hoard = []
    while True:
        hoard.append(bytes(2**16))
