"""Raise its own limits before it takes memory. They must not be its to raise."""

import resource

for name in ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_NOFILE"):
    try:
        resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        pass


def causal_mask(q_len, k_len=None):
    return bytes(8 * 2**30)
