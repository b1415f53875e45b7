"""Record which promises each known mistake breaks in a learner's check (see exam/symptoms.py)."""

import json

from autograder.catalogue import Exercise
from autograder.exam.symptoms import LEARNERS_SALT, broken_by, examined, record_path, symptoms
from autograder.mistakes import mistakes_of


def record(exercise: Exercise) -> bool:
    """Try every mistake and record what it breaks. Returns whether the record changed."""
    before = symptoms(exercise)
    found = {m.name: broken_by(examined(exercise, m, LEARNERS_SALT)) for m in mistakes_of(exercise.module)}
    lines = [f"{json.dumps(name)}: {json.dumps(broken)}" for name, broken in found.items()]
    record_path(exercise).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return found != before
