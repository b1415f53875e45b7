"""Measure what the suites never ask: a mutant of a right answer must break a promise, unless it is still right.

The model solution and the right answers in `tests/right_answers` are changed in one place at a time (see `mutation/`). A mutant
that keeps every promise survives: either the suite never asks something, or the mutant is equivalent to the right answer.
`autograder/mutants/<exercise>.toml` lists the equivalent ones, each with the reason. An entry that silences nothing is a fault.
"""

import random
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from autograder.catalogue import Exercise
from autograder.course import PACKAGE
from autograder.exam.examiner import examination, one_thread

from .mutant_runs import Fate, Runner
from .mutant_sources import Mutant, mutants_of, sources

FOLDER = PACKAGE / "mutants"
KEYS = ("source", "where", "operator", "before", "after")  # what an entry is recognised by

Key = tuple[str, ...]


@dataclass(frozen=True)
class Sample:
    """How many mutants of each exercise are drawn. The same seed draws the same ones."""

    size: int
    seed: str


@dataclass
class Result:
    """What happened to the mutants of one exercise."""

    killed: Counter[str] = field(default_factory=Counter)  # by the test that they fail, or another reason
    equivalent: list[Mutant] = field(default_factory=list)
    survivors: list[Mutant] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        found = {"killed": self.killed.total(), "equivalent": len(self.equivalent), "survivors": len(self.survivors)}
        return {"generated": sum(found.values()), **found}


def audit_mutants(exercises: list[Exercise], console: Console, sample: Sample | None = None) -> bool:
    """Examine the mutants of these exercises, print every fault and all counts. True if there is no fault."""
    total: Counter[str] = Counter()
    faults = 0
    for exercise in exercises:
        console.print(f"{exercise.name} …", markup=False)
        with _progress(console) as advance:
            result = examine_mutants(exercise, sample, advance)
        for fault in result.faults:
            console.print(f"  ✗ {fault}", markup=False)
        console.print(f"  {_said(result.counts())}", markup=False)
        total.update(result.counts())
        faults += len(result.faults)
    console.print(f"mutants: {_said(total)}; {faults} {'fault' if faults == 1 else 'faults'}")
    return not faults


def examine_mutants(
    exercise: Exercise, sample: Sample | None = None, advance: Callable[[int], None] = lambda total: None
) -> Result:
    """The results of all mutants of an exercise, or of a sample. `advance` is told the total after each mutant."""
    result, listed = Result(), _listed(exercise)
    with one_thread():
        runner = Runner(examination(exercise))
        right = []
        for source in sources(exercise):
            if fault := runner.fault_of(source):
                result.faults.append(
                    f"{source.name}: a right answer is rejected ({fault}); its mutants are not examined"
                )
            else:
                right.append(source)
        mutants = mutants_of(exercise, right)
        known = {key_of(mutant) for mutant in mutants}
        chosen = _drawn(mutants, sample, exercise)
        fates = {}
        for mutant, fate in runner.run(chosen):
            fates[id(mutant)] = fate
            advance(len(chosen))
    for mutant in chosen:
        _sort(mutant, fates[id(mutant)], listed, result)
    result.faults += _stale(exercise, listed, known, {key_of(mutant) for mutant in chosen}, result)
    return result


def key_of(mutant: Mutant) -> Key:
    mutation = mutant.mutation
    return mutant.source.name, mutation.where, mutation.operator, mutation.before, mutation.after


def _sort(mutant: Mutant, fate: Fate, listed: dict[Key, str], result: Result) -> None:
    """Put a mutant where it belongs, and report it if it is a fault."""
    if fate.killed_by:
        result.killed[fate.killed_by] += 1
        if fate.grader_error:
            result.faults.append(f"{_described(mutant)}: {fate.grader_error}")
    elif key_of(mutant) in listed:
        result.equivalent.append(mutant)
    else:
        result.survivors.append(mutant)
        result.faults.append(f"{_described(mutant)} keeps every promise of {', '.join(mutant.parts)}")


def _described(mutant: Mutant) -> str:
    mutation = mutant.mutation
    place = f"{mutant.source.name}, {mutant.line}, {mutation.where}"
    return f"{place}: {mutation.operator}: {_in_one_line(mutation.before)} -> {_in_one_line(mutation.after)}"


def _in_one_line(text: str) -> str:
    return " ⏎ ".join(line.strip() for line in text.splitlines())


def equivalents_path(exercise: Exercise) -> Path:
    return FOLDER / f"{exercise.name}.toml"


def _listed(exercise: Exercise) -> dict[Key, str]:
    """The listed mutants and why each is equivalent."""
    table = tomllib.loads(equivalents_path(exercise).read_text(encoding="utf-8"))
    listed = {}
    for entry in table.get("equivalent", []):
        if set(entry) != {*KEYS, "reason"} or not entry["reason"].strip():
            wanted = ", ".join((*KEYS, "reason"))
            raise LookupError(f"autograder/mutants/{exercise.name}.toml: an entry needs exactly {wanted}: {entry}")
        listed[tuple(entry[key] for key in KEYS)] = entry["reason"]
    return listed


def _stale(
    exercise: Exercise, listed: dict[Key, str], known: set[Key], examined: set[Key], result: Result
) -> Iterator[str]:
    """The entries that silence nothing: no mutant matches them any more, or the mutant is killed."""
    silenced = {key_of(mutant) for mutant in result.equivalent}
    for key in listed:
        if key not in known or (key in examined and key not in silenced):
            state = "is killed" if key in known else "is not generated any more"
            source, where, operator, before, after = map(_in_one_line, key)
            entry = f"{source}, {where}: {operator}: {before} -> {after}"
            yield f"autograder/mutants/{exercise.name}.toml: stale entry, this mutant {state}: {entry}"


def _drawn(mutants: list[Mutant], sample: Sample | None, exercise: Exercise) -> list[Mutant]:
    """All mutants, or a sample of them in the same order."""
    if sample is None or sample.size >= len(mutants):
        return mutants
    numbers = random.Random(f"{exercise.name} {sample.seed}").sample(range(len(mutants)), sample.size)
    return [mutants[number] for number in sorted(numbers)]


def _said(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[int], None]]:
    """Yield a function to call after each mutant. On a terminal it moves a bar. No thread draws it, because we fork."""
    if not console.is_terminal:
        yield lambda total: None
        return
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=None)

        def advance(total: int) -> None:
            bar.update(task, advance=1, total=total)
            bar.refresh()

        yield advance
