"""Raise exceptions called Broken, Passed and Verdict, as the grader's own might be. It must earn nothing."""


class Broken(AssertionError):
    verdict, message, fatal = "pass", {"en": "", "zh": ""}, False


class Passed(BaseException):
    pass


def causal_mask(q_len, k_len=None):
    raise Broken


def padding_mask(lengths, max_len):
    raise Passed
