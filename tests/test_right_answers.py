"""Right answers in many styles pass on twenty salts."""

from pathlib import Path

import pytest
import torch

from autograder.catalogue import find
from autograder.exam.examiner import examination
from autograder.exam.proxy import Local, Student
from autograder.intake.submission import Submission, read
from autograder.learner.check_files import namespace_of

ANSWERS = sorted((Path(__file__).parent / "right_answers").glob("*/*.py"))
SALTS = range(20)


class Counted(Student):
    """Remembers whether anything was counted."""

    counted = False

    def measure(self, *about, **asked):
        self.counted = True
        return super().measure(*about, **asked)


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_right_answer_passes_on_twenty_salts(path):
    exercise = find(path.parent.name)
    cells, _ = read(Submission("", exercise.name, path), exercise)
    namespace, raised = namespace_of(cells)
    assert raised == []
    torch.set_num_threads(1)
    for test in examination(exercise).tests:
        for salt in SALTS:
            student = Counted(Local(namespace))
            outcome = examination(exercise).outcome(test, student, f"salt {salt}")
            assert outcome.broken is None, f"salt {salt}: {outcome.broken}"
            if student.counted and salt > 0:  # counts depend only on shapes, which are the same for every salt
                break
