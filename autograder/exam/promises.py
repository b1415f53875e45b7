"""The promises of a suite: each is a test of one thing that a right answer does."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from autograder.language import Text
from autograder.student.wire import Seeded

Test = TypeVar("Test", bound=Callable[..., None])


@dataclass(frozen=True)
class Promise:
    """One sentence about a part. The points of a part are divided among its promises by weight."""

    part: str
    text: Text
    weight: int


def promise(
    part: str, text: Text | None = None, *, en: str = "", zh: str = "", weight: int = 1
) -> Callable[[Test], Test]:
    """Mark a test as a promise of `part`, with the sentence a learner reads.

    Give the sentence as `en` and `zh`, or as one of the texts in `exam/sentences.py` that many promises share.
    """

    def mark(test: Test) -> Test:
        vars(test)["promise"] = Promise(part, text or Text(en, zh), weight)
        return test

    return mark


def promise_of(test: Callable[..., Any]) -> Promise | None:
    found: Promise | None = getattr(test, "promise", None)
    return found


class Draw:
    """Random inputs that depend only on the name of the test and on the salt."""

    def __init__(self, name: str, salt: str):
        digest = hashlib.blake2b(f"{name}\0{salt}".encode(), digest_size=8).digest()
        self.generator = torch.Generator().manual_seed(int.from_bytes(digest) >> 1)

    def __call__(self, *shape: int, scale: float = 1.0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        """Normal numbers of this shape."""
        return (torch.randn(*shape, generator=self.generator, dtype=torch.float64) * scale).to(dtype)

    def integer(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def mask(self, *shape: int, share: float = 0.6) -> torch.Tensor:
        """A bool mask; every row allows at least one key and forbids at least one."""
        allowed = torch.rand(*shape, generator=self.generator) < share
        order = torch.rand(*shape, generator=self.generator).argsort(-1)
        return allowed.scatter(-1, order[..., :1], True).scatter(-1, order[..., 1:2], False)

    def permutation(self, n: int) -> torch.Tensor:
        return torch.randperm(n, generator=self.generator)

    def seeded(self) -> Seeded:
        """A generator for the student; `.generator()` makes the same generator on this side."""
        return Seeded(self.integer(0, 2**31))
