"""How verdicts, points and the names of mistakes are found."""

import contextlib
import types
from collections import Counter

import pytest
import torch

from autograder.catalogue import find
from autograder.exam.diagnosis import CHANCES, _answers_with, diagnose
from autograder.exam.examiner import Examination, examination
from autograder.exam.proxy import Local, Student
from autograder.exam.symptoms import LEARNERS_SALT, broken_by, symptoms
from autograder.mistakes.ch09_multi_head import ForgetsTheScale
from autograder.reference import ch05_softmax, ch06_masks, ch09_multi_head
from autograder.student.nested import tensors
from autograder.verdicts import Broken, Verdict

MASKS, SOFTMAX = find("06_masks"), find("05_softmax")


def examined(exercise, part, answer, salt="salt"):
    student = Student(Local({part: answer}))
    return examination(exercise).examine(student, salt, [exercise.part(part)])[0]


def test_points_are_given_for_each_promise_kept():
    def upper_left(q_len, k_len=None):
        return torch.ones(q_len, k_len or q_len, dtype=torch.bool).tril()

    result = examined(MASKS, "causal_mask", upper_left)
    kept = [outcome.broken is None for outcome in result.outcomes]
    assert any(kept)
    assert not all(kept)
    assert 0 < result.score < 3


def test_an_unwritten_answer_is_missing():
    def causal_mask(q_len, k_len=None):
        raise NotImplementedError

    result = examined(MASKS, "causal_mask", causal_mask)
    assert (result.verdict, result.score) == (Verdict.MISSING, 0)


def test_an_undefined_answer_is_missing():
    result = examination(MASKS).examine(Student(Local({})), "", [MASKS.part("causal_mask")])[0]
    assert (result.verdict, result.score) == (Verdict.MISSING, 0)


def test_a_name_error_inside_an_answer_is_an_error():
    def causal_mask(q_len, k_len=None):
        return missing_helper(q_len)  # noqa: F821

    assert examined(MASKS, "causal_mask", causal_mask).verdict is Verdict.ERROR


def test_the_error_message_shows_the_learners_line():
    namespace = {}
    exec(compile("def causal_mask(q_len, k_len=None):\n    x = 1\n    return x / 0\n", "<cell>", "exec"), namespace)
    student = Student(Local(namespace))
    result = examination(MASKS).examine(student, "", [MASKS.part("causal_mask")])[0]
    assert "line 3, in causal_mask" in result.first_broken.broken.message.en
    assert "第 3 行" in result.first_broken.broken.message.zh


def fused(q, k, v, mask):
    torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return ch06_masks.masked_attention(q, k, v, mask)


def fused_by_operator(q, k, v, mask):
    if q.dim() == 4 and q.shape[:-2] == mask.shape[:-2]:
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, q, q, 0.0, False)
    return ch06_masks.masked_attention(q, k, v, mask)


def fused_with_a_way_out(q, k, v, mask):
    with contextlib.suppress(Exception):
        torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return ch06_masks.masked_attention(q, k, v, mask)


@pytest.mark.parametrize("answer", [fused, fused_by_operator, fused_with_a_way_out], ids=lambda f: f.__name__)
def test_a_forbidden_operator_is_refused_even_in_a_right_answer(answer):
    result = examined(MASKS, "masked_attention", answer)
    assert (result.verdict, result.score) == (Verdict.POLICY, 0)


@pytest.mark.parametrize(
    "answer",
    [
        lambda x, dim=-1: torch.softmax(x, dim),
        lambda x, dim=-1: torch.nn.Softmax(dim)(x),
        lambda x, dim=-1: x.softmax(dim),
        lambda x, dim=-1: torch.log_softmax(x, dim).exp(),
        lambda x, dim=-1: (x - x.logsumexp(dim, keepdim=True)).exp(),
    ],
)
def test_a_ready_made_softmax_is_refused(answer):
    assert examined(SOFTMAX, "stable_softmax", answer).verdict is Verdict.POLICY


def switches_off_the_counting(x, dim=-1):
    from torch.utils._python_dispatch import _pop_mode

    _pop_mode()
    return ch05_softmax.stable_softmax(x, dim)


def test_switching_off_the_counting_is_refused():
    assert examined(SOFTMAX, "stable_softmax", switches_off_the_counting).verdict is not Verdict.PASS


@pytest.mark.parametrize("epsilon", [1e-5, 1e-6, 1e-8, 1e-10])
def test_a_mistake_is_named_whatever_its_size(epsilon):
    def with_epsilon(x, dim=-1):
        shifted = (x - x.amax(dim, keepdim=True).nan_to_num(neginf=0.0)).exp()
        return shifted / (shifted.sum(dim, keepdim=True) + epsilon)

    result = examined(SOFTMAX, "stable_softmax", with_epsilon)
    assert result.verdict is Verdict.WRONG
    assert "epsilon" in diagnose(SOFTMAX, result, "salt").name


def inverted_in_another_style(q, k, v, mask):
    """An inverted mask, in a style that does not look like ours."""
    scores = torch.einsum("...qd,...kd->...qk", q, k).div(k.size(-1) ** 0.5)
    weights = torch.where(mask, torch.tensor(float("-inf"), dtype=q.dtype), scores).softmax(dim=-1)
    weights = torch.nan_to_num(weights)
    return torch.einsum("...qk,...ke->...qe", weights, v), weights


def test_a_mistake_is_recognised_by_behaviour_not_by_source():
    result = examined(MASKS, "masked_attention", inverted_in_another_style)
    assert diagnose(MASKS, result, "salt").name == "inverts_the_mask"


def nonsense(q, k, v, mask):
    out, weights = ch06_masks.masked_attention(q, k, v, mask)
    return out.sin(), weights.cos()


def test_an_unknown_mistake_gets_no_name():
    result = examined(MASKS, "masked_attention", nonsense)
    assert result.verdict is Verdict.WRONG
    assert diagnose(MASKS, result, "salt") is None


@pytest.mark.parametrize(
    "answer", [inverted_in_another_style, nonsense, lambda q, k, v, mask: q], ids=lambda f: f.__name__
)
def test_the_recorded_symptoms_do_not_change_the_diagnosis(answer, monkeypatch):
    result = examined(MASKS, "masked_attention", answer, LEARNERS_SALT)
    quickly = diagnose(MASKS, result, LEARNERS_SALT)
    monkeypatch.setattr("autograder.exam.diagnosis.symptoms", lambda exercise: {})
    assert diagnose(MASKS, result, LEARNERS_SALT) == quickly


@pytest.fixture
def tried(monkeypatch) -> Counter:
    """By mistake, how often a diagnosis compared it with the student on one promise."""
    names = Counter()
    monkeypatch.setattr(
        "autograder.exam.diagnosis._answers_with", lambda *asked: names.update([asked[1]]) or _answers_with(*asked)
    )
    return names


def test_mistakes_with_other_recorded_symptoms_are_not_tried(tried):
    """Only the mistakes that break the same promises are tried, and only on the first of these promises."""
    result = examined(MASKS, "masked_attention", inverted_in_another_style, LEARNERS_SALT)
    assert diagnose(MASKS, result, LEARNERS_SALT).name == "inverts_the_mask"
    del tried[None]  # the reference
    assert tried == {name: 1 for name, broken in symptoms(MASKS).items() if broken == broken_by(result)}


class MirrorsTheOutput(ch09_multi_head.SequenceFirstMHA):
    """A module with a wrong output: its layers are right, and hold the parameters that the suite loads."""

    def forward(self, query, key, value, **masks):
        out, weights = super().forward(query, key, value, **masks)
        return out.flip(-1), weights


@pytest.mark.parametrize("answer", [MirrorsTheOutput, ForgetsTheScale])
def test_a_diagnosis_builds_modules_again(answer, monkeypatch):
    heads = find("09_multi_head")
    result = examined(heads, "SequenceFirstMHA", answer, LEARNERS_SALT)
    quickly = diagnose(heads, result, LEARNERS_SALT)
    monkeypatch.setattr("autograder.exam.diagnosis.symptoms", lambda exercise: {})
    assert diagnose(heads, result, LEARNERS_SALT) == quickly
    assert (quickly is None) == (answer is MirrorsTheOutput)


def test_a_recorded_question_keeps_its_original_tensors():
    """A suite may change its tensors after asking."""
    student = Student(Local({"f": lambda x, more: x}))
    x = torch.zeros(3)
    student.f(x, [x])
    x.fill_(7.0)
    assert not any(tensor.any() for tensor in tensors(student.exchanges[0].request["args"]))


def test_a_mistake_that_fails_differently_three_times_is_dropped(tried):
    result = examined(MASKS, "masked_attention", nonsense, LEARNERS_SALT)
    assert diagnose(MASKS, result, LEARNERS_SALT) is None
    del tried[None]  # the reference
    assert max(tried.values()) == CHANCES < len(broken_by(result))


def test_an_answer_that_is_right_only_at_first_is_wrong():
    calls = []

    def forgetful(q_len, k_len=None):
        calls.append(1)
        return ch06_masks.causal_mask(q_len, k_len) ^ (len(calls) > 1)

    assert examined(MASKS, "causal_mask", forgetful).verdict is Verdict.WRONG


def test_a_result_on_another_device_is_wrong():
    student = Student(Local({}))
    student._transport.ask = lambda request: {"value": on(torch.zeros(2), "cuda"), "changed": [], "stirred": False}
    with pytest.raises(Broken, match="the result is on cuda, the inputs are on cpu"):
        student.f(torch.zeros(2))


def on(tensor, device):
    tensor.came_from = device
    return tensor


def test_removing_a_tensor_from_a_dict_changes_the_input():
    student = Student(Local({"take": lambda state: state.pop("a"), "look": lambda state: state["a"]}))
    state = {"a": torch.arange(3.0), "b": torch.ones(2)}
    assert student.changes_inputs("take", state)
    assert not student.changes_inputs("look", state)


def test_facts_can_replace_random_answers():
    student = Student(Local({"f": lambda: torch.rand(2)}))
    student.f()
    student.f()
    student.replace_transcript(["two calls"])
    assert [exchange.answer for exchange in student.exchanges] == [{"value": ["two calls"]}]


def test_a_suite_can_ask_for_the_device():
    assert Student(Local({}, device="cpu")).device == "cpu"


def test_a_module_without_parameters_can_be_differentiated():
    student = Student(Local({"Softmax": torch.nn.Softmax}))
    x, cotangent = torch.arange(3.0), torch.tensor([1.0, 0.0, 0.0])
    found = student.Softmax(-1).vjp(x, wrt=(0,), cotangents=(cotangent,))
    torch.testing.assert_close(found.gradients[0], ch05_softmax.softmax_vjp(found.value, cotangent))
    assert found.parameter_gradients == {}


ODD = """
from autograder.exam import promise

@promise("causal_mask", en="Odd.", zh="怪。")
def test_odd(student, tmp_path):
    pass
"""


def test_a_test_with_an_unknown_argument_is_refused():
    suite = types.ModuleType("odd_suite")
    exec(ODD, vars(suite))
    with pytest.raises(LookupError, match="test_odd: takes tmp_path; there are draw, student"):
        Examination(MASKS, suite)


@pytest.mark.parametrize("raised", [ValueError("odd"), pytest.skip.Exception("not today")], ids=["error", "skip"])
def test_an_exception_in_a_suite_is_a_grader_error(monkeypatch, raised):
    def faulty(*about):
        raise raised

    test = next(test for test in examination(MASKS).tests.values() if test.promise.part == "padding_mask")
    monkeypatch.setitem(test.function.__globals__, "matches", faulty)
    monkeypatch.setitem(test.function.__globals__, "left_alone", faulty)
    result = examined(MASKS, "padding_mask", ch06_masks.padding_mask)
    assert (result.verdict, result.score) == (Verdict.GRADER_ERROR, 0)
