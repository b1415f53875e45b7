"""Compare one answer with the truth. An author of a suite needs one import: `from autograder.exam import promise, …`"""

from ..verdicts import Broken, require, wrong
from .answers import Raised
from .comparison import agree, agree_gradients, gradients_match, left_alone, matches, vjp
from .complexity import fits_in, grows_at_most, growth
from .counterexample import Array, Number, breaks
from .inputs import PRECISIONS, SIGMAS, draw_qkv, triangle
from .modules import Loaded, ModuleFormula, built, require_inputs_unchanged, require_refused
from .promises import Draw, promise
from .proxy import Module, Student

__all__ = [
    "PRECISIONS",
    "SIGMAS",
    "Array",
    "Broken",
    "Draw",
    "Loaded",
    "Module",
    "ModuleFormula",
    "Number",
    "Raised",
    "Student",
    "agree",
    "agree_gradients",
    "breaks",
    "built",
    "draw_qkv",
    "fits_in",
    "gradients_match",
    "grows_at_most",
    "growth",
    "left_alone",
    "matches",
    "promise",
    "require",
    "require_inputs_unchanged",
    "require_refused",
    "triangle",
    "vjp",
    "wrong",
]
