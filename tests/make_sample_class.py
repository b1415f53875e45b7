"""Make tests/sample_class: twenty submissions of eight fictional students, right, wrong, broken and copied.

    python tests/make_sample_class.py

Each student uses one of the styles in tests/right_answers, except where PLAN gives another answer.
"""

import ast
import sys
from pathlib import Path

import nbformat

from autograder.catalogue import Exercise, find
from autograder.checks.samples import hand_in, untouched, with_answer

HERE = Path(__file__).parent
FOLDER = HERE / "sample_class"
STYLES = HERE / "right_answers"

INVERTED = """
def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    {attention} = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
    {attention} = torch.nan_to_num({attention}, 0.0)
    return {attention} @ v, {attention}
"""
UPPER_LEFT = """
def causal_mask(q_len, k_len=None):
    # a triangle: row i sees columns 0 to i
    if k_len is None:
        k_len = q_len
    return torch.tril(torch.ones(q_len, k_len)).bool()
"""
MINUS_A_BILLION = """
def to_additive(mask, dtype=torch.float32):
    lowest = -1e9 if dtype != torch.float16 else -65504.0
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, lowest)
"""
AVERAGES_BLIND_ROWS = """
def masked_attention(q, k, v, mask):
    logits = torch.matmul(q, k.mT) * q.size(-1) ** -0.5
    logits = logits.masked_fill(mask == 0, torch.finfo(logits.dtype).min)
    p = logits.softmax(-1)
    return torch.matmul(p, v), p
"""
NO_CLOSING_BRACKET = """
def adapt_mask(mask, source):
    if source == "nn_mha_bool":
        return ~mask
    if source == "key_padding":
        return ~mask[:, None, None, :
    raise ValueError(source)
"""
# Fang wrote these. Emil renamed the variables, changed the comments, and handed in the same code.
FANGS = {
    "causal_mask": """
def causal_mask(q_len, k_len=None):
    width = k_len or q_len
    last_seen = torch.arange(width - q_len, width)
    grid = torch.arange(width).repeat(q_len, 1)
    return grid.le(last_seen.unsqueeze(1))
""",
    "padding_mask": """
def padding_mask(lengths, max_len):
    # count the tokens from 1
    counted = torch.ones(len(lengths), max_len).cumsum(dim=1)
    real = counted.lt(lengths.unsqueeze(1))
    return real.reshape(len(lengths), 1, 1, max_len)
""",
    "to_additive": """
def to_additive(mask, dtype=torch.float32):
    bias = torch.full(mask.shape, float("-inf")).type(dtype)
    bias[mask] = 0
    return bias
""",
    "adapt_mask": """
def adapt_mask(mask, source):
    known = ["nn_mha_bool", "additive", "sdpa_bool", "keep_01", "key_padding"]
    if known.count(source) == 0:
        raise ValueError("which mask is " + source)
    place = known.index(source)
    if place == 1:
        return mask.ge(-1.0)
    kept = mask.to(dtype=torch.bool, copy=True)
    if place in (0, 4):
        kept = torch.logical_xor(kept, torch.ones_like(kept))
    return kept.reshape(len(kept), 1, 1, kept.size(1)) if place == 4 else kept
""",
    "masked_attention": """
def masked_attention(q, k, v, mask):
    root = math.sqrt(k.size(dim=-1))
    match = torch.einsum("...ad,...bd->...ab", q / root, k)
    match = match + to_additive(mask, match.dtype)
    share = match.softmax(dim=-1)
    share = share.where(mask.any(dim=-1, keepdim=True), torch.zeros((), dtype=share.dtype))
    return torch.einsum("...ab,...be->...ae", share, v), share
""",
}
RENAMED = {
    "width": "columns", "last_seen": "limit", "grid": "positions", "counted": "steps", "real": "not_pad", "bias": "out_mask",
    "known": "names", "place": "which", "kept": "result", "root": "scale", "match": "sim", "share": "attn",
    "# count the tokens from 1": "# lengths start at one",
}  # fmt: skip


def copied(code: str) -> str:
    for name, other in RENAMED.items():
        code = code.replace(name, other)
    return code


NO_MAX = """
def stable_softmax(x, dim=-1):
    e = torch.exp(x)
    weights = e / e.sum(dim, keepdim=True)
    nothing = (x == float("-inf")).all(dim, keepdim=True)
    return weights.masked_fill(nothing, 0.0)
"""
NAN_ROW = """
def stable_softmax(x, dim=-1):
    shifted = x - x.max(dim=dim, keepdim=True).values
    e = shifted.exp()
    return e / e.sum(dim=dim, keepdim=True)
"""
HALVES_FOREVER = """
def logsumexp(x, dim=-1):
    total, step = torch.exp(x).sum(dim), 1.0
    guess = torch.zeros_like(total)
    while (guess.exp() != total).any():  # stops when the guess is exact
        guess = guess + step * torch.sign(total - guess.exp())
        step = step / 2
    return guess
"""
LAST_AXIS = """
def stable_softmax(x, dim=-1):
    top = x.amax(-1, keepdim=True)
    top = torch.where(top.isinf(), 0.0, top)
    e = (x - top).exp()
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total > 0, total, 1.0)
"""
TIMES_TEMPERATURE = """
def temperature_softmax(x, temperature, dim=-1):
    return masked_softmax(x * temperature, x > float("-inf"), dim)
"""
NO_SCALE = """
def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    scores = q @ k.transpose(-2, -1)
    if scale is not None:
        scores = scores * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    w = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return w @ v, w
"""
DIVIDED_BY_D = """
def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    d_k = q.size(-1)
    s = torch.matmul(q, k.mT) * (1 / d_k if scale is None else scale)
    if mask is not None:
        s = s.masked_fill(mask == 0, -torch.inf)
    p = s.softmax(-1).nan_to_num(0)
    return torch.matmul(p, v), p
"""
WRONG_AXIS = """
def attention_loops(q, k, v):
    s = q @ k.T / math.sqrt(k.shape[1])
    out = torch.zeros(q.shape[0], v.shape[1], dtype=q.dtype)
    for j in range(k.shape[0]):
        out += torch.softmax(s, dim=0)[:, j, None] * v[j]
    return out
"""
READY_MADE = """
def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    eye = torch.eye(k.shape[-2], dtype=v.dtype).expand(*v.shape[:-2], -1, -1)
    return out, torch.nn.functional.scaled_dot_product_attention(q, k, eye, attn_mask=mask, scale=scale)
"""

# student, exercise, style of the right answers (None: untouched), the student's own answers
PLAN = [
    ("ada", "masks", "einsum_and_where", {}),
    ("bo", "masks", "fill_softmax_nan_to_num", {"causal_mask": UPPER_LEFT, "masked_attention": INVERTED.format(attention="w")}),
    ("chen", "masks", "additive_bias_with_safe_rows", {"masked_attention": INVERTED.format(attention="weights")}),
    ("dora", "masks", "plain_loops", {"to_additive": MINUS_A_BILLION, "masked_attention": AVERAGES_BLIND_ROWS}),
    ("emil", "masks", "plain_loops", {part: copied(answer) for part, answer in FANGS.items()}),
    ("fang", "masks", "plain_loops", FANGS),
    ("gita", "masks", "flattened_baddbmm", {"causal_mask": UPPER_LEFT, "adapt_mask": NO_CLOSING_BRACKET}),
    ("hugo", "masks", None, {}),
    ("ada", "softmax", "plain_max_shift", {}),
    ("bo", "softmax", "torch_where_everywhere", {"stable_softmax": NO_MAX}),
    ("chen", "softmax", "masked_fill_then_nan_to_num", {"stable_softmax": NAN_ROW}),
    ("dora", "softmax", "additive_bias_with_safe_rows", {"logsumexp": HALVES_FOREVER}),
    ("fang", "softmax", "online_one_pass", {}),
    ("gita", "softmax", "masked_fill_then_nan_to_num", {"stable_softmax": LAST_AXIS, "temperature_softmax": TIMES_TEMPERATURE}),
    ("ada", "scaled_dot_product", "exp_minus_logsumexp", {}),
    ("bo", "scaled_dot_product", "einsum", {"scaled_dot_product_attention": NO_SCALE}),
    ("emil", "scaled_dot_product", "float64_inside", {"scaled_dot_product_attention": DIVIDED_BY_D}),
    ("fang", "scaled_dot_product", "keys_down_the_columns", {"attention_loops": WRONG_AXIS}),
    ("gita", "scaled_dot_product", "batched_matrix_products", {"scaled_dot_product_attention": READY_MADE}),
    ("hugo", "scaled_dot_product", "additive_bias_with_safe_rows", {}),
]  # fmt: skip


def submissions():
    """(student, exercise, notebook) for each line of the plan."""
    for student, name, style, own in PLAN:
        exercise = find(name)
        notebook = untouched(exercise)
        answers = {} if style is None else cells(exercise, style, own)
        for part, code in answers.items():
            notebook = with_answer(notebook, part, code)
        yield student, exercise, notebook


def cells(exercise: Exercise, style: str, own: dict[str, str]) -> dict[str, str]:
    """One of the right answers, split into its parts, with the student's own answers in place; shared code comes first."""
    text = (STYLES / exercise.name / f"{style}.py").read_text(encoding="utf-8")
    names = [part.name for part in exercise.parts]
    answers, shared = {}, []
    for node in ast.parse(text).body[1:]:  # without the docstring
        code = ast.get_source_segment(text, node)
        if getattr(node, "name", None) in names:
            answers[node.name] = own.get(node.name, code).strip()
        else:
            shared.append(code)
    return answers | {names[0]: "\n\n\n".join([*shared, answers[names[0]]])}


def make(folder: Path) -> None:
    for student, exercise, notebook in submissions():
        nbformat.validate(notebook)
        hand_in(folder, student, exercise, notebook)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else FOLDER)
