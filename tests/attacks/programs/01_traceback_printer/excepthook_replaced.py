"""Replace sys.excepthook and traceback's printers, so that no failure is ever shown. It must earn nothing."""

import sys
import traceback

sys.excepthook = lambda *failure: None
traceback.print_exc = traceback.print_exception = lambda *args, **kwargs: None


def masked_attention(q, k, v, mask):
    raise RuntimeError("nobody will see this")
