"""Wait for a person to type. There is none; it must be an error or a timeout."""


def causal_mask(q_len, k_len=None):
    return input("mask? ")


answer = input("ready? ")
