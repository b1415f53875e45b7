"""Name the mistake behind a wrong answer by comparing behaviour, never source code.

Every mistake of the part sits the same tests with the same inputs. A mistake that broke the same promise and gave the
same outputs as the student is the one; where several did, the other promises decide. Failing that, one whose errors mostly
point the same way (another epsilon, another large negative number) will do, when it broke the same promises or only some
more or fewer.
"""

from collections.abc import Callable
from functools import lru_cache

import torch

from .catalogue import Exercise
from .examiner import Outcome, PartResult, examination, one_thread
from .mistakes import Mistake, mistakes_of
from .proxy import Local, Student
from .recorded import LEARNERS_SALT, broken_by, symptoms
from .verdicts import Verdict

SAME = 1e-3  # of the distance between the student's answer and the truth
ROUNDING = 16  # units of rounding of the largest value
ALIGNED = 0.98  # cosine between two errors that are the same mistake in another size


def diagnose(exercise: Exercise, result: PartResult, salt: str) -> Mistake | None:
    """The mistake that explains most of what went wrong in this part, if one does."""
    with one_thread():
        return _diagnose(exercise, result, salt)


def _diagnose(exercise: Exercise, result: PartResult, salt: str) -> Mistake | None:
    if result.verdict not in (Verdict.WRONG, Verdict.ERROR, Verdict.POLICY):
        return None
    known = [mistake for mistake in mistakes_of(exercise.module) if mistake.part == result.part.name]
    if found := _with_the_same_symptoms(known, result, exercise, salt):
        return found
    for outcome in result.outcomes:
        suspects = [m for m in known if outcome.broken and _resembles(outcome, exercise, m, salt)]
        if suspects:
            break
    else:
        return None
    if exact := [m for m in suspects if _resembles(outcome, exercise, m, salt, ways=(_close,))]:
        return _narrowed(exact, result, exercise, salt)
    scores = {mistake.name: _resemblance(result, exercise, mistake, salt) for mistake in suspects}
    best = max(suspects, key=lambda mistake: scores[mistake.name])
    return best if scores[best.name] > (0, 0) else None


def _with_the_same_symptoms(known: list[Mistake], result: PartResult, exercise: Exercise, salt: str) -> Mistake | None:
    """The quick way, where there is a record: a mistake that breaks just these promises, and the first of them alike."""
    if salt != LEARNERS_SALT:
        return None
    same = [mistake for mistake in known if symptoms(exercise).get(mistake.name) == broken_by(result)]
    exact = [m for m in same if _resembles(result.first_broken, exercise, m, salt, ways=(_close,))]
    return _narrowed(exact, result, exercise, salt) if exact else None


def _narrowed(suspects: list[Mistake], result: PartResult, exercise: Exercise, salt: str) -> Mistake:
    """Promise by promise, broken ones first, those stay that fare as the student does, until one is left."""
    for ours in sorted(result.outcomes, key=lambda outcome: outcome.broken is None):
        if len(suspects) == 1:
            break
        if ours.broken:
            alike = [m for m in suspects if _resembles(ours, exercise, m, salt, ways=(_close,))]
        else:
            alike = [m for m in suspects if not _breaks(exercise, m, ours.test, salt)]
        suspects = alike or suspects
    return suspects[0]


@lru_cache(maxsize=16384)
def _behaviour(exercise: Exercise, name: str | None, part: str, test: str, salt: str) -> Outcome:
    """How a mistake, or with None the reference itself, fares in one test."""
    exam = examination(exercise)
    answers = dict(exam.right)
    if name is not None:
        answers[part] = next(m.answer for m in mistakes_of(exercise.module) if m.name == name)
    return exam.outcome(test, Student(Local(answers)), salt)


def _breaks(exercise: Exercise, mistake: Mistake, test: str, salt: str) -> bool:
    """Whether a mistake breaks a promise: tried, unless it is on record."""
    if salt == LEARNERS_SALT and mistake.name in symptoms(exercise):
        return test in symptoms(exercise)[mistake.name]
    return _behaviour(exercise, mistake.name, mistake.part, test, salt).broken is not None


def _resembles(ours: Outcome, exercise: Exercise, mistake: Mistake, salt: str, ways=None) -> bool:
    """Whether the mistake breaks this promise in the same way."""
    if not _breaks(exercise, mistake, ours.test, salt):
        return False
    theirs = _behaviour(exercise, mistake.name, mistake.part, ours.test, salt)
    right = _right(ours, exercise, mistake.part, salt)
    return bool(theirs.broken) and any(_alike(ours, theirs, right, way) for way in ways or (_close, _aligned))


def _right(ours: Outcome, exercise: Exercise, part: str, salt: str) -> Callable[[], Outcome]:
    """How the reference itself fares, tried only when somebody asks: often the answers are equal to the last digits."""
    return lambda: _behaviour(exercise, None, part, ours.test, salt)


def _resemblance(result: PartResult, exercise: Exercise, mistake: Mistake, salt: str) -> tuple[int, int]:
    """(promises broken in the same way, promises with the same outcome); (0, 0) when nothing is explained."""
    explained = agreeing = pointing = 0
    broken, its_broken = set(), set()
    for ours in result.outcomes:
        breaks = _breaks(exercise, mistake, ours.test, salt)
        agreeing += (ours.broken is not None) == breaks
        broken |= {ours.test} if ours.broken else set()
        its_broken |= {ours.test} if breaks else set()
        if ours.broken and breaks:
            theirs = _behaviour(exercise, mistake.name, mistake.part, ours.test, salt)
            right = _right(ours, exercise, mistake.part, salt)
            explained += _alike(ours, theirs, right, _close)
            pointing += _alike(ours, theirs, right, _aligned)
    if explained:
        return explained, agreeing
    if (broken <= its_broken or its_broken <= broken) and 2 * pointing > len(broken):
        return 0, agreeing
    return 0, 0


def _alike(ours, theirs, right, similar) -> bool:
    if len(ours.exchanges) != len(theirs.exchanges):
        return False
    if ours.broken.verdict is not theirs.broken.verdict:
        return False
    return all(
        _answers_alike(mine.answer, wrong.answer, lambda i=i: _answer(right(), i), similar)
        for i, (mine, wrong) in enumerate(zip(ours.exchanges, theirs.exchanges, strict=True))
    )


def _answer(outcome: Outcome, number: int) -> dict:
    return outcome.exchanges[number].answer if number < len(outcome.exchanges) else {}


def _answers_alike(mine, wrong, true, similar) -> bool:
    if "error" in mine or "error" in wrong:
        if "error" not in mine or "error" not in wrong:
            return False
        compared = ("kind",) if "error" in true() else ("kind", "text")  # many faults raise the same kind of error
        return all(mine["error"].get(key) == wrong["error"].get(key) for key in compared)
    if mine.get("changed") != wrong.get("changed"):
        return False
    a, b = _leaves(mine), _leaves(wrong)
    if len(a) != len(b):
        return False
    return all(similar(x, y, lambda i=i: _leaf(true(), i)) for i, (x, y) in enumerate(zip(a, b, strict=True)))


def _leaf(answer: dict, number: int):
    leaves = _leaves(answer)
    return leaves[number] if number < len(leaves) else None


def _leaves(answer) -> list:
    def flat(value):
        if isinstance(value, dict):
            return [leaf for key in sorted(value) for leaf in flat(value[key])]
        if isinstance(value, list | tuple):
            return [leaf for item in value for leaf in flat(item)]
        return [value]

    return flat([answer.get("value"), answer.get("gradients"), answer.get("parameter_gradients")])


def _comparable(x, y) -> bool:
    return isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.shape == y.shape and x.dtype == y.dtype


def _close(x, y, true) -> bool:
    """Equal, as measured by how far the student is from the truth."""
    if not isinstance(x, torch.Tensor):
        return type(x) is type(y) and (not isinstance(x, bool | int | float | str) or x == y)
    if not _comparable(x, y):
        return False
    if not x.is_floating_point():
        return bool(torch.equal(x, y))
    unit, x, y = torch.finfo(x.dtype).eps, x.double(), y.double()
    finite = x.isfinite() & y.isfinite()
    if not torch.equal(x[~finite].nan_to_num(nan=0.5), y[~finite].nan_to_num(nan=0.5)):
        return False
    x, y = x[finite], y[finite]
    apart, allowed = _size(x - y), ROUNDING * unit * _size(x)
    if apart <= allowed:
        return True
    truth = true()
    if isinstance(truth, torch.Tensor) and truth.shape == finite.shape:
        off = x - truth.double()[finite]
        allowed += SAME * _size(off[off.isfinite()])
    return apart <= allowed


def _aligned(x, y, true) -> bool:
    """Both wrong in the same direction, or both right."""
    if not _comparable(x, y) or not x.is_floating_point() or not _comparable(x, true()):
        return _close(x, y, true)
    truth = true().double()
    x, y = (x.double() - truth).flatten(), (y.double() - truth).flatten()
    if not (x.isfinite().all() and y.isfinite().all()):
        return False
    lengths = x.norm() * y.norm()
    return bool(lengths == 0 and x.norm() == y.norm()) or bool(x @ y >= ALIGNED * lengths > 0)


def _size(x) -> float:
    return float(x.abs().max()) if x.numel() else 0.0
