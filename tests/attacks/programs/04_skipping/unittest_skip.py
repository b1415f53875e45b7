"""Raise unittest.SkipTest in a cell and in a call. It must earn nothing."""

import unittest


def causal_mask(q_len, k_len=None):
    raise unittest.SkipTest


raise unittest.SkipTest
