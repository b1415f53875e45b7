"""Fake reports: whole classes of results without grading anybody."""

import random
from dataclasses import replace

from autograder.catalogue import Exercise, Part, find
from autograder.language import NOTHING, Text
from autograder.mistakes import Mistake, mistakes_of
from autograder.results import NamedMistake, PartReport, PromiseReport, SubmissionReport
from autograder.verdicts import Verdict

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
IT_IS_RIGHT = Text("It is right.", "答案正确。")


def fake_part(
    part: Part,
    verdict: Verdict = Verdict.PASS,
    mistake: Mistake | None = None,
    message: Text = NOTHING,
    kept: float = 0.0,
) -> PartReport:
    """The report on one part; `kept` is the share of its points that a part that is not right gets."""
    return PartReport(
        id=part.name,
        score=part.points if verdict is Verdict.PASS else round(part.points * kept, 2),
        max_score=part.points,
        verdict=verdict,
        message=message,
        mistake=mistake and NamedMistake(mistake.name, mistake.text),
        promises=(PromiseReport(IT_IS_RIGHT, verdict is Verdict.PASS),),
    )


def fake_report(
    student: str, exercise: Exercise, parts: list[PartReport], verdict: Verdict, seconds: float = 0.25
) -> SubmissionReport:
    return SubmissionReport(
        student=student,
        exercise=exercise.name,
        score=round(sum(part.score for part in parts), 2),
        max_score=round(sum(part.max_score for part in parts), 2),
        verdict=verdict,
        seconds=seconds,
        parts=tuple(parts),
    )


def right_report(student: str, exercise: Exercise, seconds: float = 0.25) -> SubmissionReport:
    return fake_report(student, exercise, [fake_part(part) for part in exercise.parts], Verdict.PASS, seconds)


def wrong_report(student: str, exercise: Exercise, mistake: Mistake, text: str = "off by 0.41") -> SubmissionReport:
    """The part that the mistake belongs to is wrong and gets half of its points."""
    message = Text(text, text)
    parts = [
        fake_part(part, Verdict.WRONG, mistake, message, kept=0.5) if part.name == mistake.part else fake_part(part)
        for part in exercise.parts
    ]
    return fake_report(student, exercise, parts, Verdict.WRONG)


def fake_class(size: int, exercise: Exercise | None = None) -> list[SubmissionReport]:
    """A third is right, most others have one known mistake, some are too slow."""
    exercise = exercise or find("06_masks")
    chance, known = random.Random(0), mistakes_of(exercise.module)
    too_slow = Text("no answer in time", "no answer in time")
    reports = []
    for i in range(size):
        student, kind = f"student{i:04}", chance.random()
        if kind < 0.35:
            report = right_report(student, exercise, chance.uniform(0.1, 0.4))
        elif kind < 0.95:
            report = wrong_report(student, exercise, known[int(chance.triangular(0, len(known), 3))])
        else:
            parts = [fake_part(part, Verdict.TIMEOUT, message=too_slow) for part in exercise.parts]
            report = fake_report(student, exercise, parts, Verdict.TIMEOUT, chance.uniform(4, 20))
        reports.append(report)
    return reports


def hostile_class() -> list[SubmissionReport]:
    """Every name and every message tries to break out of the file it is written to."""
    exercise = find("06_masks")
    known = mistakes_of(exercise.module)
    reports = [wrong_report(name, exercise, known[i], HOSTILE_TEXT) for i, name in enumerate(HOSTILE_NAMES)]
    message = Text(HOSTILE_TEXT, HOSTILE_TEXT)
    errors = [fake_part(part, Verdict.ERROR, message=message) for part in exercise.parts]
    refused = replace(fake_report("refused", exercise, errors, Verdict.ERROR), message=message)
    unknown = replace(fake_report("unknown", exercise, [], Verdict.MISSING), exercise="<b>99</b>")
    return [*reports, refused, unknown]
