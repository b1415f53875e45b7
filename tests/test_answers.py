"""An answer from a student's process counts only in the agreed form."""

import pytest
import torch

from autograder.exam.answers import checked
from autograder.exam.proxy import Local, Student
from autograder.student.wire import Handle
from autograder.verdicts import Broken, Verdict

X = torch.arange(3.0)
BACKWARD = {"wrt": (0,), "cotangents": (X,)}
CALL = {"do": "call", "target": "f", "args": [X]}
MISSING = object()


class Altering(Local):
    """A student's process that leaves out or replaces one field in its answers to calls of functions, or of modules."""

    def __init__(self, target: type, field: str, value: object):
        super().__init__({"double": lambda x: 2 * x, "Softmax": torch.nn.Softmax})
        self.target, self.field, self.value = target, field, value

    def ask(self, request):
        answer = super().ask(request)
        if request["do"] == "call" and isinstance(request["target"], self.target):
            del answer[self.field]
            if self.value is not MISSING:
                answer[self.field] = self.value
        return answer


WAYS = {
    "a function": (str, lambda student: student.double(X)),
    "a function with its gradients": (str, lambda student: student.vjp("double", X, **BACKWARD)),
    "a module that is built": (str, lambda student: student.Softmax(-1)),
    "a module": (Handle, lambda student: student.Softmax(-1)(X)),
    "a module with its gradients": (Handle, lambda student: student.Softmax(-1).vjp(X, **BACKWARD)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("changed", MISSING),
        ("changed", None),
        ("changed", False),
        ("changed", [0]),
        ("stirred", MISSING),
        ("stirred", None),
        ("stirred", 0),
    ],
    ids=lambda value: "missing" if value is MISSING else repr(value),
)
def test_an_answer_to_a_call_must_say_what_the_call_changed(way, field, value):
    target, call = WAYS[way]
    with pytest.raises(Broken, match="not in the agreed form") as refused:
        call(Student(Altering(target, field, value)))
    assert (refused.value.verdict, refused.value.fatal) == (Verdict.POLICY, True)
    assert "约定的格式" in refused.value.message.zh


@pytest.mark.parametrize("way", WAYS)
def test_an_unaltered_answer_is_accepted(way):
    _, call = WAYS[way]
    call(Student(Altering(type(None), "", MISSING)))


def test_an_answer_with_an_error_need_not_say_what_changed():
    answer = {"error": {"kind": "ValueError", "kinds": ["ValueError"], "text": "", "lines": []}}
    assert checked(answer, CALL) is answer


@pytest.mark.parametrize("request_", [{"do": "defined", "names": []}, {"do": "cell", "source": ""}])
def test_an_answer_to_another_request_need_not_say_what_changed(request_):
    assert checked({"value": 1}, request_) == {"value": 1}
    with pytest.raises(Broken):
        checked({"value": 1}, CALL)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"error": "text"},
        {"error": {"lines": [["f", 1]]}},
        {"value": 1, "counts": {"flops": "many"}},
        {"value": 1, "counts": {"intact": 1}},
        {"value": 1, "gradients": {}},
    ],
)
def test_an_answer_of_another_form_is_refused(answer):
    with pytest.raises(Broken) as refused:
        checked(answer, {"do": "defined", "names": []})
    assert refused.value.verdict is Verdict.POLICY
