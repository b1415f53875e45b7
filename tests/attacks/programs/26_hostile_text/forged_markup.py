"""Put rich markup, Jinja and CSV formulas into an error. They must stay what they are: text."""


def causal_mask(q_len, k_len=None):
    raise ValueError("[link=file:///etc/passwd]x[/] {{ 7 * 7 }} {% raw %} =cmd|' /C calc'!A0 $(id) `id`")
