"""Make the report on one examined part.

Nothing here needs a notebook file or a sandbox, so `check` stays fast in a learner's kernel.
"""

from autograder.catalogue import Exercise, Part
from autograder.results import NamedMistake, PartReport, PromiseReport
from autograder.sections import section
from autograder.verdicts import Broken, Verdict

from .diagnosis import diagnose
from .examiner import PartResult


def report(exercise: Exercise, result: PartResult, salt: str) -> PartReport:
    """The report on one examined part, with the name of the mistake if one is recognised."""
    promises = tuple(PromiseReport(outcome.promise.text, outcome.broken is None) for outcome in result.outcomes)
    first = result.first_broken
    if first is None or first.broken is None:
        return PartReport(result.part.name, result.score, result.part.points, result.verdict, promises=promises)
    mistake = diagnose(exercise, result, salt)
    return PartReport(
        result.part.name,
        result.score,
        result.part.points,
        result.verdict,
        message=first.broken.message,
        broken=first.promise.text if result.verdict is Verdict.WRONG else None,
        mistake=NamedMistake(mistake.name, mistake.text) if mistake else None,
        section=None if result.verdict is Verdict.MISSING else section(exercise, result.part),
        promises=promises,
    )


def not_examined(part: Part, reason: Broken) -> PartReport:
    """The report on a part that could not be examined at all."""
    return PartReport(part.name, 0.0, part.points, reason.verdict, reason.message)
