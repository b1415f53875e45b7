"""The results of grading and checking, as typed records. Texts are joined only where they are shown, and never parsed."""

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from .language import COLON, NOTHING, Text
from .sections import Section
from .verdicts import Verdict

PROMISE, MISTAKE, READ = Text("promise", "要求"), Text("likely mistake", "很可能是这个错误"), Text("read", "阅读")

Data = dict[str, Any]  # what JSON can hold


@dataclass(frozen=True, slots=True)
class PromiseReport:
    """One promise of a part: its sentence, and whether it was kept."""

    text: Text
    kept: bool


@dataclass(frozen=True, slots=True)
class NamedMistake:
    """A known mistake that was recognised."""

    name: str
    text: Text


@dataclass(frozen=True, slots=True)
class PartReport:
    """The result of one part."""

    id: str  # the name of the function or class
    score: float
    max_score: float
    verdict: Verdict
    message: Text = NOTHING  # the first failure; empty when everything is right
    broken: Text | None = None  # the first broken promise, if it says more than the message
    mistake: NamedMistake | None = None
    section: Section | None = None  # where to read about it
    promises: tuple[PromiseReport, ...] = ()

    def seen(self, lang: str) -> str:
        """The first failure, and the promise it broke."""
        return self.message[lang] + (_line(PROMISE, self.broken, lang) if self.broken else "")

    def told(self, lang: str) -> str:
        """Everything in one text: failure, promise, mistake and section."""
        mistake = _line(MISTAKE, self.mistake.text, lang) if self.mistake else ""
        return self.seen(lang) + mistake + (_line(READ, self.section.words, lang) if self.section else "")

    def public(self) -> Data:
        """The part as it is stored in `results.json`."""
        return {
            "id": self.id,
            "score": self.score,
            "max_score": self.max_score,
            "verdict": str(self.verdict),
            "mistake": self.mistake and self.mistake.name,
            "message": {"en": self.told("en"), "zh": self.told("zh")},
            "promises": [{"kept": promise.kept, **promise.text.data()} for promise in self.promises],
        }


@dataclass(frozen=True, slots=True)
class SubmissionReport:
    """The result of one submission. `message` says why it could not be graded at all."""

    student: str
    exercise: str
    score: float
    max_score: float
    verdict: Verdict
    seconds: float
    parts: tuple[PartReport, ...]
    message: Text | None = None

    def public(self) -> Data:
        """The submission as it is stored in `results.json`."""
        found = {
            "student": self.student,
            "exercise": self.exercise,
            "score": self.score,
            "max_score": self.max_score,
            "verdict": str(self.verdict),
            "seconds": self.seconds,
            "parts": [part.public() for part in self.parts],
        }
        return found | ({"message": self.message.data()} if self.message else {})

    def data(self) -> Data:
        """The whole record, as it is stored in the journal."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Data) -> "SubmissionReport":
        """Rebuild the record from `data()`."""
        parts = tuple(_part(part) for part in data["parts"])
        return cls(**data | {"verdict": Verdict(data["verdict"]), "parts": parts, "message": _text(data["message"])})


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a tensor that is shown: rows of numbers, and the position of the worst one."""

    where: str  # such as "[0, 1, :, :]"; empty when everything is shown
    rows: list[list[float | int | bool]]
    worst: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Failure:
    """What a learner sees about the first broken promise."""

    message: Text
    section: Section
    mistake: Text | None = None
    traceback: str = ""
    inputs: str = ""  # the smallest failing input that was found
    yours: Excerpt | None = None
    expected: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class Afterwards:
    """The text shown when a whole exercise is right."""

    why: Text
    next: Text


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a learner sees about one part: the report, and what to do next."""

    report: PartReport
    failure: Failure | None = None
    still_open: tuple[str, ...] = ()  # the other parts of the exercise that are not right yet
    afterwards: Afterwards | None = None


def _line(title: Text, text: Text, lang: str) -> str:
    return f"\n  {title[lang]}{COLON[lang]}{text[lang]}"


def _part(data: Data) -> PartReport:
    mistake, section = data["mistake"], data["section"]
    return PartReport(
        **data
        | {
            "verdict": Verdict(data["verdict"]),
            "message": Text(**data["message"]),
            "broken": _text(data["broken"]),
            "mistake": mistake and NamedMistake(mistake["name"], Text(**mistake["text"])),
            "section": section and Section(**{name: Text(**text) for name, text in section.items()}),
            "promises": tuple(_promise(p["text"]["en"], p["text"]["zh"], p["kept"]) for p in data["promises"]),
        }
    )


@lru_cache(maxsize=2**14)
def _promise(en: str, zh: str, kept: bool) -> PromiseReport:
    """The whole class has the same promises, so each record is made once."""
    return PromiseReport(Text(en, zh), kept)


def _text(data: Data | None) -> Text | None:
    return Text(**data) if data else None
