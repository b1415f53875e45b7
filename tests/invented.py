"""Results as the grader reports them, invented: whole classes without grading anybody."""

import random

from autograder.catalogue import Exercise, find
from autograder.mistakes import mistakes_of

HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "=HYPERLINK(\"http://example.org\",\"marks\")",
    "@SUM(1+1)",
    "-2+3",
    "＝1＋1",
    "{{ results }}",
    "class.html",
    "张伟 ‮gro.elpmaxe",
    "not utf-8 \udcff",
)  # fmt: skip
HOSTILE_TEXT = (
    "</pre></script><script>alert(1)</script><img src=x onerror=alert(1)> ]]> \x00\x1b[31m {{ results }} &amp;"
)


def a_part(part, verdict: str = "pass", mistake: str | None = None, text: str = "", kept: float = 0.0) -> dict:
    return {
        "id": part.name,
        "score": part.points if verdict == "pass" else round(part.points * kept, 2),
        "max_score": part.points,
        "verdict": verdict,
        "mistake": mistake,
        "message": {"en": text, "zh": text},
        "promises": [{"kept": verdict == "pass", "en": "It is right.", "zh": "答案正确。"}],
    }


def a_result(student: str, exercise: Exercise, parts: list[dict], verdict: str, seconds: float = 0.25) -> dict:
    return {
        "student": student,
        "exercise": exercise.name,
        "score": round(sum(part["score"] for part in parts), 2),
        "max_score": round(sum(part["max_score"] for part in parts), 2),
        "verdict": verdict,
        "seconds": seconds,
        "parts": parts,
    }


def wrong_result(student: str, exercise: Exercise, mistake, text: str = "off by 0.41") -> dict:
    parts = [
        a_part(part, "wrong", mistake.name, text, kept=0.5) if part.name == mistake.part else a_part(part)
        for part in exercise.parts
    ]
    return a_result(student, exercise, parts, "wrong")


def a_class(size: int, exercise: Exercise | None = None) -> list[dict]:
    """A third right, most others with one known mistake, some too slow."""
    exercise = exercise or find("06_masks")
    chance, known = random.Random(0), mistakes_of(exercise.module)
    results = []
    for i in range(size):
        student, kind = f"student{i:04}", chance.random()
        if kind < 0.35:
            result = a_result(
                student, exercise, [a_part(part) for part in exercise.parts], "pass", chance.uniform(0.1, 0.4)
            )
        elif kind < 0.95:
            result = wrong_result(student, exercise, known[int(chance.triangular(0, len(known), 3))])
        else:
            parts = [a_part(part, "timeout", text="no answer in time") for part in exercise.parts]
            result = a_result(student, exercise, parts, "timeout", chance.uniform(4, 20))
        results.append(result)
    return results


def hostile_class() -> list[dict]:
    """Everybody's name and every message tries something."""
    exercise = find("06_masks")
    known = mistakes_of(exercise.module)
    results = [wrong_result(name, exercise, known[i], HOSTILE_TEXT) for i, name in enumerate(HOSTILE_NAMES)]
    refused = a_result(
        "refused", exercise, [a_part(part, "error", text=HOSTILE_TEXT) for part in exercise.parts], "error"
    )
    unknown = a_result("unknown", exercise, [], "missing") | {"exercise": "<b>99</b>"}
    return [*results, refused | {"message": {"en": HOSTILE_TEXT, "zh": HOSTILE_TEXT}}, unknown]
