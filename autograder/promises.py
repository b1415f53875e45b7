"""What a suite is made of: promises, each a test that states one thing a right answer does."""

import hashlib
from dataclasses import dataclass

import torch

from .student.wire import Seeded


@dataclass(frozen=True)
class Promise:
    """One sentence about a part. A part's points are shared out by weight over its promises."""

    part: str
    text: dict[str, str]
    weight: int


def promise(part: str, *, en: str, zh: str, weight: int = 1):
    """Mark a test as a promise of `part`, with the sentence a learner reads."""

    def mark(test):
        test.promise = Promise(part, {"en": en, "zh": zh}, weight)
        return test

    return mark


class Draw:
    """Random inputs that depend on the test's name and on the salt, and on nothing else."""

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
        """A bool mask; every row allows a key and forbids a key."""
        allowed = torch.rand(*shape, generator=self.generator) < share
        order = torch.rand(*shape, generator=self.generator).argsort(-1)
        return allowed.scatter(-1, order[..., :1], True).scatter(-1, order[..., 1:2], False)

    def permutation(self, n: int) -> torch.Tensor:
        return torch.randperm(n, generator=self.generator)

    def seeded(self) -> Seeded:
        """A generator for the student; use `.generator()` for the same one here."""
        return Seeded(self.integer(0, 2**31))
