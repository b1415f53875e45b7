"""Mutants of a right answer: the same code, changed in one place.

An operator takes one place of the syntax tree and yields what may stand there instead. `classic` has the operators that suit
any program, `habits` those of people who write attention. `wrong` has what some mutants call.
"""

from . import classic, habits
from .places import OPERATORS, Mutation, mutations

__all__ = ["OPERATORS", "Mutation", "classic", "habits", "mutations"]
