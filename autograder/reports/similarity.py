"""Find pairs of submissions that are suspiciously similar: they share lines that almost nobody else wrote.

Comments, docstrings, layout and the learner's own names are removed, and so is every line of the released notebook or
the model solution. A line that many people wrote is no evidence. A line that only two people wrote counts log2 of the
size of the class, in bits; the more people wrote it, the less it counts. A pair is reported if its code is similar and
its rare lines count more than chance would give to any pair of the class.

Does not find: an answer that was rewritten, or one that was copied from outside the class.
"""

import builtins
import io
import keyword
import math
import tokenize
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

ALIKE = 0.8  # share of the tokens that must be the same, in the same order
MARGIN = 20  # bits beyond chance, because lines of the same style often come together
SHORTEST = 4  # shorter lines, in tokens, are ignored
LONGEST = 4000  # tokens of one submission that are compared
ROWS = 256  # submissions compared with the others at once; this limits the memory

KEPT_NAMES = frozenset({*keyword.kwlist, *dir(builtins), "torch", "math", "np", "numpy", "F", "nn"})
LAYOUT = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})

Line = tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """Two similar submissions: how much of their code is the same, and how many of the shared lines are rare."""

    one: str
    other: str
    share: float
    rare_lines: int


def alike(answers: dict[str, list[str]], known: Iterable[str]) -> list[Pair]:
    """The suspicious pairs among the answers to one exercise, the most similar first.

    `answers` are the learners' own cells by student; `known` is code that everybody was given or may have seen.
    """
    common = {line for source in known for line in lines(source)}
    own = {student: _own_lines(cells, common) for student, cells in answers.items()}
    if len(own) < 2:
        return []
    writers = Counter(line for written in own.values() for line in set(written))
    bits = {line: math.log2(len(own) / (n - 1)) for line, n in writers.items() if 1 < n <= 1 + math.sqrt(len(own))}
    needed = math.log2(math.comb(len(own), 2)) + MARGIN
    unusual = {s: written for s, written in own.items() if _weight(set(written), bits) >= needed}
    found = []
    for one, other, share in _close(unusual):
        shared = set(own[one]) & set(own[other])
        if _weight(shared, bits) >= needed:
            first, second = sorted((one, other))
            found.append(Pair(first, second, share, len(shared & bits.keys())))
    return sorted(found, key=lambda pair: (-pair.share, pair.one, pair.other))


def _own_lines(cells: list[str], common: set[Line]) -> list[Line]:
    written = [line for cell in cells for line in lines(cell) if line not in common]
    sizes = accumulate(map(len, written))
    return [line for line, size in zip(written, sizes, strict=True) if size <= LONGEST]


def _weight(shared: Iterable[Line], bits: dict[Line, float]) -> float:
    return sum(bits.get(line, 0.0) for line in shared)


@lru_cache(maxsize=2**14)  # many submissions contain the same cells
def lines(source: str) -> tuple[Line, ...]:
    """The statements of a cell as tokens, with the learner's own names replaced by their order within the line."""
    found: list[list[tokenize.TokenInfo]] = []
    line: list[tokenize.TokenInfo] = []
    for token in _tokens(source):
        if token.type == tokenize.NEWLINE:
            found.append(line)
            line = []
        elif token.type not in LAYOUT:
            line.append(token)
    statements = [line for line in [*found, line] if not all(token.type == tokenize.STRING for token in line)]
    named = (_without_own_names(line) for line in statements)
    return tuple(line for line in named if len(line) >= SHORTEST)


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens up to the first error. Code that cannot be parsed can still be copied."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(source).readline)
    except (tokenize.TokenError, SyntaxError):
        return


def _without_own_names(line: list[tokenize.TokenInfo]) -> Line:
    names: dict[str, str] = {}
    words, depth = [], 0
    for i, token in enumerate(line):
        word = token.string
        if token.type == tokenize.OP:
            depth += 1 if word in "([{" else -1 if word in ")]}" else 0
        before = line[i - 1].string if i else ""
        after = line[i + 1].string if i + 1 < len(line) else ""
        given = before == "." or (after == "=" and depth) or word in KEPT_NAMES  # an attribute, a keyword argument
        if token.type == tokenize.NAME and not given:
            word = names.setdefault(word, f"name{len(names)}")
        words.append(word)
    return tuple(words)


def _close(own: dict[str, list[Line]]) -> Iterator[tuple[str, str, float]]:
    """The pairs with similar code. Only submissions of similar length are compared, because others cannot be similar."""
    texts = {student: "".join(_letter(word) for line in written for word in line) for student, written in own.items()}
    students = sorted(texts, key=lambda student: (len(texts[student]), student))
    lengths = np.array([len(texts[student]) for student in students])
    for start in range(0, len(students), ROWS):
        rows = students[start : start + ROWS]
        reach = lengths[min(start + ROWS, len(students)) - 1] * (2 - ALIKE) / ALIKE
        columns = students[start : int(np.searchsorted(lengths, reach, side="right"))]
        shares = cdist(
            [texts[s] for s in rows],
            [texts[s] for s in columns],
            scorer=Indel.normalized_similarity,
            score_cutoff=ALIKE,
            workers=-1,
            dtype=np.float32,
        )
        for i, j in zip(*np.nonzero(shares >= ALIKE), strict=True):
            if j > i:
                yield rows[i], columns[j], float(shares[i, j])


def _letter(word: str) -> str:
    """One character per token, so that whole tokens are compared."""
    return chr(0x10000 + zlib.crc32(word.encode(errors="surrogatepass")) % 0x100000)
