"""One answer against the truth: the promises of a suite, and everything an author needs to write one.

A suite needs one import line: `from autograder.exam import promise, matches, …`
"""

from ..verdicts import Broken, require, wrong
from .comparison import agree, agree_gradients, gradients_match, left_alone, matches, vjp
from .complexity import fits_in, growth, grows_at_most
from .counterexample import Array, Number, breaks
from .promises import Draw, promise
from .proxy import Module, Raised, Student

__all__ = [
    "Array",
    "Broken",
    "Draw",
    "Module",
    "Number",
    "Raised",
    "Student",
    "agree",
    "agree_gradients",
    "breaks",
    "fits_in",
    "gradients_match",
    "growth",
    "grows_at_most",
    "left_alone",
    "matches",
    "promise",
    "require",
    "vjp",
    "wrong",
]
