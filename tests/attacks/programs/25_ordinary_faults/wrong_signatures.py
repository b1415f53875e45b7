"""Functions with the wrong parameters, and names that are no functions. It must be an ordinary error."""

import torch


def causal_mask():
    return torch.ones(1, 1, dtype=torch.bool)


def padding_mask(lengths, max_len, unknown):
    return lengths


to_additive = 3
adapt_mask = torch
masked_attention = type("masked_attention", (), {"__init__": lambda self: None})
