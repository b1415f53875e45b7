"""No right answer is ever failed: many styles, twenty salts."""

from pathlib import Path

import pytest

from autograder.catalogue import find
from autograder.examiner import examination
from autograder.proxy import Local, Student
from autograder.selfcheck import namespace_of
from autograder.submission import Submission, read
from autograder.verdicts import Verdict

ANSWERS = sorted((Path(__file__).parent / "right_answers").glob("*/*.py"))


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_right_answer_passes_on_twenty_salts(path):
    exercise = find(path.parent.name)
    cells, _ = read(Submission("", exercise.name, path), exercise)
    namespace, raised = namespace_of(cells)
    assert raised == []
    for salt in range(20):
        for result in examination(exercise).examine(Student(Local(namespace)), f"salt {salt}"):
            assert result.verdict is Verdict.PASS, f"salt {salt}: {result.first_broken.broken}"
