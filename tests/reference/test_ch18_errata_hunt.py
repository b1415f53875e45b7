"""The reference of chapter 18, compared with PyTorch and with loops, and the rules for inputs that break code."""

import inspect
import re

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right

from autograder.catalogue import find
from autograder.checks.samples import solution
from autograder.exam.counterexample import Array, Number, fit, judge
from autograder.exam.examiner import examination
from autograder.exam.proxy import Local, Student
from autograder.mistakes import ch18_errata_hunt as given
from autograder.mistakes import mistakes_of
from autograder.reference import ch18_errata_hunt as reference
from autograder.verdicts import Broken

EXERCISE = find("18_errata_hunt")
TASKS = [part.name[-2:] for part in EXERCISE.parts if part.name.startswith("break")]
sdpa = F.scaled_dot_product_attention


def given_code(task):
    """The first mistake of a repair is the code that was given."""
    return next(mistake for mistake in mistakes_of(EXERCISE.module) if mistake.part == f"repair_{task}")


@pytest.fixture
def draw():
    generator = torch.Generator().manual_seed(18)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.fixture
def qkv(draw):
    return draw(2, 3, 4, 5), draw(2, 3, 6, 5), draw(2, 3, 6, 7)


@pytest.fixture
def mask():
    allowed = torch.rand(2, 3, 4, 6, generator=torch.Generator().manual_seed(7)) < 0.6
    allowed[..., 1] = True
    return allowed


@pytest.mark.parametrize("task", TASKS)
def test_the_notebook_shows_the_given_code(task):
    source = inspect.getsource(given_code(task).answer)
    shown = next(cell.source for cell in solution(EXERCISE).cells if cell.source.startswith(f"def given_{task}("))
    assert shown == re.sub(r"^def \w+", f"def given_{task}", source[source.index("def ") :].rstrip())


@pytest.mark.parametrize("task", TASKS)
def test_the_given_code_earns_no_points(task):
    mistake = given_code(task)
    part = EXERCISE.part(mistake.part)
    for salt in ("one", "two"):
        assert examination(EXERCISE).examine(Student(Local({part.name: mistake.answer})), salt, [part])[0].score == 0


def test_plain_attention_matches_pytorch(qkv):
    torch.testing.assert_close(reference.repair_01(*qkv), sdpa(*qkv))


def test_masked_attention_matches_pytorch_with_empty_rows_too(qkv, mask):
    q, k, v = (x[:, 0] for x in qkv)
    mask[1, :, 2] = False
    out, weights = reference.repair_02(q, k, v, mask[:, 0])
    torch.testing.assert_close(out, sdpa(q, k, v, attn_mask=mask[:, 0]))
    torch.testing.assert_close(weights.sum(-1), mask[:, 0].any(-1).double())
    torch.testing.assert_close(reference.repair_07(*qkv, mask), sdpa(*qkv, attn_mask=mask))


def test_lengths_match_slicing(qkv):
    q, k, v = (x[:, 0] for x in qkv)
    out = reference.repair_03(q, k, v, torch.tensor([0, 4]))
    assert not out[0].any()
    torch.testing.assert_close(out[1], sdpa(q[1], k[1, :4], v[1, :4]))


def test_masks_of_zeros_and_ones(qkv, mask):
    q, k, v = (x[:, 0] for x in qkv)
    for dtype in (torch.float32, torch.int64, torch.bool):
        torch.testing.assert_close(
            reference.repair_04(q, k, v, mask[0, 0].to(dtype)), sdpa(q, k, v, attn_mask=mask[0, 0])
        )


def test_the_causal_mask_is_lower_right_with_and_without_a_mask(qkv):
    q, k, v = (x[:, 0] for x in qkv)
    torch.testing.assert_close(reference.repair_05(q, k, v), sdpa(q, k, v, attn_mask=causal_lower_right(4, 6)))
    everywhere = torch.ones(4, 6, dtype=torch.bool)
    torch.testing.assert_close(reference.repair_06(q, k, v, everywhere, True), reference.repair_05(q, k, v))
    torch.testing.assert_close(reference.repair_06(q, k, v, everywhere, False), sdpa(q, k, v))


def test_dropout_is_active_in_training_with_the_given_rate(qkv):
    q, k, v = (x[:, 0] for x in qkv)
    for repaired in (reference.repair_09, reference.repair_10):
        assert not repaired(q, k, v, 1.0, True).any()
        torch.testing.assert_close(repaired(q, k, v, 0.9, False), sdpa(q, k, v))
        torch.testing.assert_close(repaired(q, k, v, 0.0, True), sdpa(q, k, v))
    out, weights = reference.repair_08(q[0], k[0], v[0], 1.0, True)
    assert not out.any()
    torch.testing.assert_close(weights @ v[0], sdpa(q[0], k[0], v[0]))


def test_heads_are_slices_of_columns(draw):
    x = draw(2, 5, 12)
    for split in (reference.repair_11, reference.repair_14):
        heads = split(x, 3)
        assert all(torch.equal(heads[:, h], x[..., 4 * h : 4 * h + 4]) for h in range(3))
    assert torch.equal(reference.repair_12(heads), x.transpose(0, 1))
    with pytest.raises(ValueError, match="7 heads"):
        reference.repair_14(x, 7)


def test_tokens_attend_in_each_head(draw):
    x = draw(5, 2, 12)
    for h in range(3):
        columns = x[..., 4 * h : 4 * h + 4].transpose(0, 1)
        expected = sdpa(columns, columns, columns).transpose(0, 1)
        torch.testing.assert_close(reference.repair_13(x, 3)[..., 4 * h : 4 * h + 4], expected)


def test_all_heads_obey_the_mask_of_their_sequence(qkv, mask):
    per_sequence = mask[:, 0]
    for repaired in (reference.repair_15, reference.repair_16):
        torch.testing.assert_close(repaired(*qkv, per_sequence), sdpa(*qkv, attn_mask=per_sequence[:, None]))
    torch.testing.assert_close(reference.repair_16(*qkv, mask[0, 0]), sdpa(*qkv, attn_mask=mask[0, 0]))


def test_the_most_similar_key_wins():
    images = torch.tensor([[1.0, 0.0], [0.0, 5.0]])
    assert reference.repair_17(images, torch.tensor([[9.0, 9.0], [0.1, 0.0], [0.0, 0.1]])).tolist() == [1, 2]


def test_users_do_not_influence_each_other(draw):
    items = draw(3, 5, 4)
    edited = items.clone()
    edited[1:] += 1
    assert torch.equal(reference.repair_18(items)[0], reference.repair_18(edited)[0])
    torch.testing.assert_close(reference.repair_18(items)[1], sdpa(items[1], items[1], items[1])[-1])


FORM = {"x": Array("float", (3,)), "num_heads": Number(int, 1, 16)}


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (None, "dict or a tuple"),
        ({"x": torch.randn(2, 3, 4)}, "dict or a tuple"),
        ((torch.randn(2, 3, 4), True), "Python int"),
        ((torch.randn(2, 3, 4), 17), "between 1 and 16"),
        ((torch.randn(2, 3, 4, dtype=torch.float16), 2), "float tensor"),
        ((torch.randn(3, 4), 2), "2 axes, not 3"),
        ((torch.randn(2, 17, 4), 2), "1 to 16"),
        ((torch.randn(2, 0, 4), 2), "1 to 16"),
        ((torch.zeros(2, 3, 4), 2), "same number"),
        ((torch.randn(2, 3, 4) * torch.inf, 2), "±100"),
        ((torch.randn(2, 3, 4) * torch.nan, 2), "±100"),
    ],
)
def test_invalid_inputs_are_refused_with_a_reason(value, complaint):
    with pytest.raises(Broken, match=re.escape(complaint)):
        fit("break_11", value, FORM)


def test_a_mask_may_hold_only_the_allowed_values():
    form = {"mask": Array("float", (2,), only=(0, 1)), "lengths": Array("int", (1,))}
    assert fit("break", (torch.ones(2, 3), torch.tensor([0, 1])), form)["mask"].dtype == torch.float64
    with pytest.raises(Broken, match="only"):
        fit("break", (torch.full((2, 3), 0.5), torch.tensor([0])), form)
    with pytest.raises(Broken, match="negative"):
        fit("break", (torch.ones(2, 3), torch.tensor([-1])), form)


def test_inputs_that_the_right_code_refuses_do_not_count(draw):
    found = judge(given.cuts_in_the_wrong_order, reference.repair_11, {"x": draw(2, 5, 12), "num_heads": 5})
    assert "do not fit together" in found[0]


def test_a_crash_counts_unless_a_silent_error_is_required(draw):
    inputs = {"x": draw(2, 5, 10), "num_heads": 3}
    code = given.invents_tokens, reference.repair_14
    assert judge(*code, inputs, refusal=True) == "wrong"
    assert judge(*code, inputs, refusal=True, silently=True) == "crashes"
    assert judge(*code, {"x": draw(2, 9, 10), "num_heads": 3}, refusal=True, silently=True) == "wrong"
    assert judge(*code, {"x": draw(2, 5, 12), "num_heads": 3}, refusal=True, silently=True) == "right"
