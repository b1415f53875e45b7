"""Raise an error whose class is called like a script, in a line that is one too. It must reach a page as text."""

Kind = type("<script>alert('@MARK@')</script>", (Exception,), {})


def causal_mask(q_len, k_len=None):
    raise Kind("'\"><svg onload=alert('@MARK@')>")  # </pre><script>alert('@MARK@')</script>
