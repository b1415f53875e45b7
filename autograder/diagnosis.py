"""Name the mistake behind a wrong answer by comparing behaviour, never source code.

Every mistake of the part sits the same tests with the same inputs. A mistake that broke the same promise and gave the
same outputs as the student is the one; where several did, the other promises decide. Failing that, one whose errors mostly
point the same way (another epsilon, another large negative number) will do, when it broke the same promises or only some
more or fewer. One that broke three promises otherwise than the student is looked at no more.

Where marks count, what a mistake does in a test is found out once for a whole class. In a learner's check, whose inputs are
always the same, most of it is on record; the rest takes the student's own questions, asked again.
"""

from collections import Counter
from functools import lru_cache, partial

import torch

from .catalogue import Exercise
from .examiner import Outcome, PartResult, examination, one_thread
from .mistakes import Mistake, mistakes_of
from .proxy import Exchange, Local, Module, Student
from .recorded import LEARNERS_SALT, broken_by, how, symptoms
from .student.wire import Handle
from .verdicts import Verdict

SAME = 1e-3  # of the distance between the student's answer and the truth
ROUNDING = 16  # units of rounding of the largest value
CHANCES = 3  # promises that a mistake may break otherwise before it is out of the question
ALIGNED = 0.98  # cosine between two errors that are the same mistake in another size


def diagnose(exercise: Exercise, result: PartResult, salt: str) -> Mistake | None:
    """The mistake that explains most of what went wrong in this part, if one does."""
    if result.verdict not in (Verdict.WRONG, Verdict.ERROR, Verdict.POLICY):
        return None
    with one_thread():
        return _Case(exercise, result, salt).solved()


class _Case:
    """One part that went wrong, and the mistakes that may be behind it."""

    def __init__(self, exercise: Exercise, result: PartResult, salt: str):
        self.exercise, self.result, self.salt = exercise, result, salt
        self.known = [mistake for mistake in mistakes_of(exercise.module) if mistake.part == result.part.name]
        self.record = symptoms(exercise) if salt == LEARNERS_SALT else {}
        self.asked_again: dict[tuple, _AskedAgain] = {}

    def solved(self) -> Mistake | None:
        if exact := self.with_the_same_symptoms():
            return self.narrowed(exact)
        apart = Counter()  # by mistake, the promises that it breaks otherwise than the student
        for ours in filter(lambda outcome: outcome.broken, self.result.outcomes):
            tried = [m for m in self.known if apart[m.name] < CHANCES and self.breaks(m, ours.test)]
            if suspects := [mistake for mistake in tried if self.resembles(mistake, ours, _close, _aligned)]:
                break
            apart.update(mistake.name for mistake in tried)
        else:
            return None
        if exact := [m for m in suspects if self.resembles(m, ours)]:
            return self.narrowed(exact)
        scores = {mistake.name: self.resemblance(mistake) for mistake in suspects}
        best = max(suspects, key=lambda mistake: scores[mistake.name])
        return best if scores[best.name] > (0, 0) else None

    def with_the_same_symptoms(self) -> list[Mistake]:
        """The quick way, where there is a record: mistakes that break just these promises, and the first of them alike."""
        broken = broken_by(self.result)
        same = [mistake for mistake in self.known if self.record.get(mistake.name) == broken]
        return [mistake for mistake in same if self.resembles(mistake, self.result.first_broken)]

    def narrowed(self, suspects: list[Mistake]) -> Mistake:
        """Promise by promise, broken ones first, those stay that fare as the student does, until one is left."""
        for ours in sorted(self.result.outcomes, key=lambda outcome: outcome.broken is None):
            if len(suspects) == 1:
                break
            if ours.broken:
                alike = [mistake for mistake in suspects if self.resembles(mistake, ours)]
            else:
                alike = [mistake for mistake in suspects if not self.breaks(mistake, ours.test)]
            suspects = alike or suspects
        return suspects[0]

    def resemblance(self, mistake: Mistake) -> tuple[int, int]:
        """(promises broken in the same way, promises with the same outcome); (0, 0) when nothing is explained."""
        explained = agreeing = pointing = 0
        broken, its_broken = set(), set()
        for ours in self.result.outcomes:
            breaks = self.breaks(mistake, ours.test)
            agreeing += (ours.broken is not None) == bool(breaks)
            broken |= {ours.test} if ours.broken else set()
            its_broken |= {ours.test} if breaks else set()
            if ours.broken and breaks:
                explained += self.resembles(mistake, ours)
                pointing += self.resembles(mistake, ours, _aligned)
        if explained:
            return explained, agreeing
        if (broken <= its_broken or its_broken <= broken) and 2 * pointing > len(broken):
            return 0, agreeing
        return 0, 0

    def breaks(self, mistake: Mistake, test: str) -> list | None:
        """How a mistake breaks a promise, if it does: tried, unless it is on record."""
        if mistake.name in self.record:
            return self.record[mistake.name].get(test)
        theirs = self.tried(mistake.name, test)
        return how(theirs) if theirs.broken else None

    def resembles(self, mistake: Mistake, ours: Outcome, *ways) -> bool:
        """Whether the mistake breaks this promise in the same way, as one of `ways` compares numbers (default: `_close`)."""
        if self.breaks(mistake, ours.test) != how(ours):
            return False
        theirs, right = self.answers(mistake.name, ours), self.answers(None, ours)
        return any(
            all(_answers_alike(mine.answer, theirs(i), partial(right, i), way) for i, mine in enumerate(ours.exchanges))
            for way in ways or (_close,)
        )

    def answers(self, name: str | None, ours: Outcome):
        """By its number, what a mistake, or with None the reference itself, answers to a question of this promise."""
        if not self.record or not _can_be_asked_again(ours.exchanges):
            return lambda number: _answer(self.tried(name, ours.test), number)
        if (name, ours.test) not in self.asked_again:
            answers = _answers_with(self.exercise, name, self.result.part.name)
            self.asked_again[name, ours.test] = _AskedAgain(ours.exchanges, answers)
        return self.asked_again[name, ours.test].answer

    def tried(self, name: str | None, test: str) -> Outcome:
        return _behaviour(self.exercise, name, self.result.part.name, test, self.salt)


@lru_cache(maxsize=16384)
def _behaviour(exercise: Exercise, name: str | None, part: str, test: str, salt: str) -> Outcome:
    """How a mistake, or with None the reference itself, fares in one test."""
    return examination(exercise).outcome(test, Student(Local(_answers_with(exercise, name, part))), salt)


def _answers_with(exercise: Exercise, name: str | None, part: str) -> dict:
    right = examination(exercise).right
    if name is None:
        return right
    return right | {part: next(m.answer for m in mistakes_of(exercise.module) if m.name == name)}


class _AskedAgain:
    """The student's questions of one promise, put to somebody else: each only when its answer is wanted."""

    def __init__(self, asked: list[Exchange], answers: dict):
        self.asked, self.other = asked, Local(answers)
        self.answered: list[dict] = []
        self.modules: dict[Handle, Handle] = {}  # by the student's module, the other's

    def answer(self, number: int) -> dict:
        while len(self.answered) <= number:
            self.answered.append(self._ask(self.asked[len(self.answered)]))
        return self.answered[number]

    def _ask(self, exchange: Exchange) -> dict:
        if exchange.request is None:
            return exchange.answer
        target = exchange.request["target"]
        request = exchange.request | {"target": self.modules.get(target, target)}
        if "error" not in exchange.answer:
            request.pop("forbidden", None)  # nobody refused; how the promise was broken is on record
        answer = self.other.ask(request)
        made = exchange.answer.get("value")
        if isinstance(made, Module) and isinstance(answer.get("value"), Handle):
            self.modules[made._handle] = answer["value"]
            answer["value"] = made  # both made a module, and no more can be said about that
        return answer


def _can_be_asked_again(asked: list[Exchange]) -> bool:
    """Whether every question is there, and every module that one is about was made by an earlier one."""
    modules = set()
    for exchange in asked:
        value = exchange.answer.get("value")
        if exchange.request is None and value is not None:
            return False
        target = (exchange.request or {}).get("target")
        if isinstance(target, Handle) and target not in modules:
            return False
        if isinstance(value, Module):
            modules.add(value._handle)
    return True


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
