"""Grade submissions: one, a class, on this machine or on a cluster."""
