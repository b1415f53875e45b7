"""Name the mistake behind a wrong answer by comparing behaviour, never source code.

Every mistake of the part takes the same tests with the same inputs. A mistake that breaks the same promise and gives the
same outputs as the student is named. If several do, the other promises decide. If none does, a mistake with errors in
mostly the same direction (another epsilon, another large negative number) is named, provided that it breaks the same
promises, or a subset or superset of them. A mistake that fails three promises differently from the student is dropped.

When marks count, each mistake runs each test once for a whole class. In a learner's check the inputs are always the
same, so most results are on record; for the rest, the mistake gets the student's questions again.
"""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import torch

from autograder.catalogue import Exercise
from autograder.mistakes import Mistake, mistakes_of
from autograder.student.nested import leaves
from autograder.student.wire import Answer, Handle
from autograder.verdicts import Verdict

from .examiner import Outcome, PartResult, examination, one_thread
from .proxy import Exchange, Local, Module, Student
from .symptoms import LEARNERS_SALT, Signature, broken_by, signature_of, symptoms

SAME = 1e-3  # as a share of the distance between the student's answer and the truth
ROUNDING = 16  # units of rounding of the largest value
CHANCES = 3  # a mistake that breaks this many promises differently is dropped
ALIGNED = 0.98  # least cosine between two errors of the same mistake with different sizes

Truth = Callable[[], Any]  # the right answer, computed only when it is wanted
Similar = Callable[[Any, Any, Truth], bool]


def diagnose(exercise: Exercise, result: PartResult, salt: str) -> Mistake | None:
    """The mistake that explains most of what went wrong in this part, if one does."""
    if result.verdict not in (Verdict.WRONG, Verdict.ERROR, Verdict.POLICY):
        return None
    with one_thread():
        return _Case(exercise, result, salt).solved()


class _Case:
    """One wrong part, and the mistakes that may explain it."""

    def __init__(self, exercise: Exercise, result: PartResult, salt: str):
        self.exercise, self.result, self.salt = exercise, result, salt
        self.known = [mistake for mistake in mistakes_of(exercise.module) if mistake.part == result.part.name]
        self.record = symptoms(exercise) if salt == LEARNERS_SALT else {}
        self.asked_again: dict[tuple[str | None, str], _AskedAgain] = {}

    def solved(self) -> Mistake | None:
        if exact := self.with_the_same_symptoms():
            return self.narrowed(exact)
        apart: Counter[str] = Counter()  # by mistake, how many promises it breaks differently from the student
        for ours in (outcome for outcome in self.result.outcomes if outcome.broken):
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
        """With a record: the mistakes that fail exactly the same tests and give the same output in the first of them."""
        broken, first = broken_by(self.result), self.result.first_broken
        same = [mistake for mistake in self.known if self.record.get(mistake.name) == broken]
        return [mistake for mistake in same if first is not None and self.resembles(mistake, first)]

    def narrowed(self, suspects: list[Mistake]) -> Mistake:
        """Go through the promises, broken ones first, and keep the mistakes that behave like the student, until one is left."""
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
        broken: set[str] = set()
        its_broken: set[str] = set()
        for ours in self.result.outcomes:
            breaks = self.breaks(mistake, ours.test)
            agreeing += (ours.broken is not None) == bool(breaks)
            if ours.broken:
                broken.add(ours.test)
            if breaks:
                its_broken.add(ours.test)
            if ours.broken and breaks:
                explained += self.resembles(mistake, ours)
                pointing += self.resembles(mistake, ours, _aligned)
        if explained:
            return explained, agreeing
        if (broken <= its_broken or its_broken <= broken) and 2 * pointing > len(broken):
            return 0, agreeing
        return 0, 0

    def breaks(self, mistake: Mistake, test: str) -> Signature:
        """How a mistake breaks a promise; empty when it keeps it. It comes from the record, or from running the test."""
        if mistake.name in self.record:
            return self.record[mistake.name].get(test, [])
        return signature_of(self.tried(mistake.name, test))

    def resembles(self, mistake: Mistake, ours: Outcome, *ways: Similar) -> bool:
        """Whether the mistake breaks this promise in the same way. `ways` compare numbers; one must agree."""
        if self.breaks(mistake, ours.test) != signature_of(ours):
            return False
        theirs, right = self.answers(mistake.name, ours), self.answers(None, ours)
        return any(
            all(_answers_alike(mine.answer, theirs(i), partial(right, i), way) for i, mine in enumerate(ours.exchanges))
            for way in ways or (_close,)
        )

    def answers(self, name: str | None, ours: Outcome) -> Callable[[int], Answer]:
        """A function: the number of a question -> the answer of a mistake, or of the reference if `name` is None."""
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
    """The outcome of one test for a mistake, or for the reference if `name` is None."""
    return examination(exercise).outcome(test, Student(Local(_answers_with(exercise, name, part))), salt)


def _answers_with(exercise: Exercise, name: str | None, part: str) -> dict[str, Any]:
    right = examination(exercise).right
    if name is None:
        return right
    return right | {part: next(m.answer for m in mistakes_of(exercise.module) if m.name == name)}


class _AskedAgain:
    """The student's questions of one promise, put to another answer. Each is asked only when it is needed."""

    def __init__(self, asked: list[Exchange], answers: dict[str, Any]):
        self.asked, self.other = asked, Local(answers)
        self.answered: list[Answer] = []
        self.modules: dict[Handle, Handle] = {}  # the student's module -> the other's module

    def answer(self, number: int) -> Answer:
        while len(self.answered) <= number:
            self.answered.append(self._ask(self.asked[len(self.answered)]))
        return self.answered[number]

    def _ask(self, exchange: Exchange) -> Answer:
        if exchange.request is None:
            return exchange.answer
        target = exchange.request["target"]
        request = exchange.request | {"target": self.modules.get(target, target)}
        if "error" not in exchange.answer:
            request.pop("forbidden", None)  # no forbidden operator raised, so the slow watch is not needed
        answer = self.other.ask(request)
        made = exchange.answer.get("value")
        if isinstance(made, Module) and isinstance(answer.get("value"), Handle):
            self.modules[made.handle] = answer["value"]
            answer["value"] = made  # both made a module; there is nothing more to compare
        return answer


def _can_be_asked_again(asked: list[Exchange]) -> bool:
    """Whether all questions are known, and every module they use was made by an earlier question."""
    modules: set[Handle] = set()
    for exchange in asked:
        value = exchange.answer.get("value")
        if exchange.request is None and value is not None:
            return False
        target = (exchange.request or {}).get("target")
        if isinstance(target, Handle) and target not in modules:
            return False
        if isinstance(value, Module):
            modules.add(value.handle)
    return True


def _answer(outcome: Outcome, number: int) -> Answer:
    return outcome.exchanges[number].answer if number < len(outcome.exchanges) else {}


def _answers_alike(mine: Answer, wrong: Answer, true: Truth, similar: Similar) -> bool:
    if "error" in mine or "error" in wrong:
        if "error" not in mine or "error" not in wrong:
            return False
        compared = ("kind",) if "error" in true() else ("kind", "text")  # many mistakes raise the same kind of error
        return all(mine["error"].get(key) == wrong["error"].get(key) for key in compared)
    if mine.get("changed") != wrong.get("changed"):
        return False
    a, b = _leaves(mine), _leaves(wrong)
    if len(a) != len(b):
        return False
    return all(similar(x, y, partial(_leaf, true, i)) for i, (x, y) in enumerate(zip(a, b, strict=True)))


def _leaf(true: Truth, number: int) -> Any:
    found = _leaves(true())
    return found[number] if number < len(found) else None


def _leaves(answer: Answer) -> list[Any]:
    return list(leaves([answer.get("value"), answer.get("gradients"), answer.get("parameter_gradients")]))


def _comparable(x: Any, y: Any) -> bool:
    return isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.shape == y.shape and x.dtype == y.dtype


def _close(x: Any, y: Any, true: Truth) -> bool:
    """Whether x and y are equal, compared with how far x is from the truth."""
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


def _aligned(x: Any, y: Any, true: Truth) -> bool:
    """Whether x and y are wrong in the same direction, or both right."""
    if not _comparable(x, y) or not x.is_floating_point() or not _comparable(x, true()):
        return _close(x, y, true)
    truth = true().double()
    x, y = (x.double() - truth).flatten(), (y.double() - truth).flatten()
    if not (x.isfinite().all() and y.isfinite().all()):
        return False
    lengths = x.norm() * y.norm()
    return bool(lengths == 0 and x.norm() == y.norm()) or bool(x @ y >= ALIGNED * lengths > 0)


def _size(x: torch.Tensor) -> float:
    return float(x.abs().max()) if x.numel() else 0.0
