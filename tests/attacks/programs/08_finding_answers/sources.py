"""Ask inspect and linecache for the source of whoever calls. It must find no suite and earn nothing."""

import inspect
import linecache


def causal_mask(q_len, k_len=None):
    lines = [line for entry in inspect.stack() for line in entry.code_context or ()]
    lines += [line for name in list(linecache.cache) for line in linecache.getlines(name)]
    text = "".join(lines)
    if "reference." + "causal_mask" in text or "torch.equal" + "(causal_mask" in text:
        raise RuntimeError("@MARK@ read " + "this: the tests")
    raise LookupError("no test in sight")
