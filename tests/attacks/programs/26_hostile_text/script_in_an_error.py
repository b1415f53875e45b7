"""Raise an error whose text is a script. It must reach a page as text."""


def causal_mask(q_len, k_len=None):
    raise ValueError("<script>document.title='@MARK@'</script><img src=x onerror=alert('@MARK@')>")
