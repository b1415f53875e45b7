"""Raise GeneratorExit and a BaseException of its own. It must earn nothing."""


class Beyond(BaseException):
    pass


def causal_mask(q_len, k_len=None):
    raise GeneratorExit


def padding_mask(lengths, max_len):
    raise Beyond
