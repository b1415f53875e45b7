"""Texts in both languages, and which language to use."""

import locale
import os
from collections.abc import Callable
from dataclasses import dataclass

LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Text:
    """One text in English and in Chinese. `text[lang]` selects the language."""

    en: str
    zh: str

    def __getitem__(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.en

    def __bool__(self) -> bool:
        return bool(self.en or self.zh)

    @classmethod
    def each(cls, make: Callable[[str], str]) -> "Text":
        """Build a text by calling `make(lang)` for each language."""
        return cls(make("en"), make("zh"))

    def data(self) -> dict[str, str]:
        """The text as a JSON object."""
        return {"en": self.en, "zh": self.zh}


NOTHING = Text("", "")
COLON = Text(": ", "：")


def preferred(asked: str | None = None) -> str:
    """`asked`, or AUTOGRADER_LANG, or the locale; English otherwise."""
    places = (asked, os.environ.get("AUTOGRADER_LANG"), *(os.environ.get(n) for n in ("LC_ALL", "LC_MESSAGES", "LANG")))
    for place in (*places, locale.getlocale()[0]):
        if place and place[:2].lower() in LANGUAGES:
            return place[:2].lower()
    return "en"
