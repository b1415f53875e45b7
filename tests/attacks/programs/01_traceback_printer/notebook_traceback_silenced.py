"""Make IPython show no traceback: stock graders take a silent cell for a passed one. It must earn nothing."""

from IPython import get_ipython

shell = get_ipython()
shell.showtraceback = lambda *args, **kwargs: None
shell._showtraceback = lambda *args, **kwargs: None
shell.set_custom_exc((BaseException,), lambda *args, **kwargs: None)


def causal_mask(q_len, k_len=None):
    raise RuntimeError
