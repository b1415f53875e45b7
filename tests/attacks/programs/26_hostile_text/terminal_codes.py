"""Put terminal codes, right-to-left marks and NUL into outputs and errors. They must do nothing to whoever reads."""

print("\x1b[2J\x1b]0;@MARK@\x07\x1b[31mred \u202e\u2066 \x00 \ud800")


def causal_mask(q_len, k_len=None):
    raise ValueError("\x1b[2J\x1b]52;c;@MARK@\x07 \u202e \x00 \ud800 ]]> &amp; %s {0}")
