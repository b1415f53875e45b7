"""Find submissions that are suspiciously alike: those that share what hardly anybody else wrote.

Comments, docstrings, layout and the names a learner chose are removed, and so is every line that the released
notebook or the model solution holds. A line that many wrote is no evidence. A line that only two wrote counts log2 of the
size of the class, in bits; the more people wrote it, the less it counts. A pair is shown when its code is alike and the
rare lines it shares count more than chance would give any pair of the class.

Does not see: an answer that was rewritten, or one that was copied from outside the class.
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

ALIKE = 0.8  # of the tokens, in the same order
MARGIN = 20  # bits beyond what chance gives: lines in one style come together, so they prove less than they seem to
SHORTEST = 4  # tokens of a line that says anything
LONGEST = 4000  # tokens of one submission that are compared
ROWS = 256  # submissions compared with the others at once, which bounds the memory

KEPT_NAMES = frozenset({*keyword.kwlist, *dir(builtins), "torch", "math", "np", "numpy", "F", "nn"})
LAYOUT = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})

Line = tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """Two submissions that are alike: how much of their code, and how many lines nobody or hardly anybody else wrote."""

    one: str
    other: str
    share: float
    rare_lines: int


def alike(answers: dict[str, list[str]], known: Iterable[str]) -> list[Pair]:
    """The suspicious pairs among the answers to one exercise, most alike first.

    `answers` holds the learner's own cells by student, `known` the code that everybody was given or may have been shown.
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


@lru_cache(maxsize=2**14)  # what was given to all, and what was copied, is read once
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
    """As far as it can be read: what cannot be parsed can still be copied."""
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
    """The pairs whose code is alike. Only lengths that can reach that share are compared with each other."""
    texts = {student: "".join(_letter(word) for line in written for word in line) for student, written in own.items()}
    students = sorted(texts, key=lambda student: (len(texts[student]), student))
    lengths = np.array([len(texts[student]) for student in students])
    for start in range(0, len(students), ROWS):
        rows = students[start : start + ROWS]
        reach = lengths[min(start + ROWS, len(students)) - 1] * (2 - ALIKE) / ALIKE
        columns = students[start : int(np.searchsorted(lengths, reach, side="right"))]
        shares = cdist([texts[s] for s in rows], [texts[s] for s in columns],
                       scorer=Indel.normalized_similarity, score_cutoff=ALIKE, workers=-1, dtype=np.float32)  # fmt: skip
        for i, j in zip(*np.nonzero(shares >= ALIKE), strict=True):
            if j > i:
                yield rows[i], columns[j], float(shares[i, j])


def _letter(word: str) -> str:
    """One character a token, so that whole tokens are compared."""
    return chr(0x10000 + zlib.crc32(word.encode(errors="surrogatepass")) % 0x100000)
