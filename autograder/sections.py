"""Where the book teaches a part: the address of its section and what it is called, in both languages."""

import re
from functools import cache
from pathlib import Path

from .catalogue import Exercise, Part
from .language import LANGUAGES

SITE = "https://attention-by-hand.github.io/"  # the same as in _config.yml, which is not installed with the package
BOOK = Path(__file__).resolve().parents[1] / "book"
WORDS = {"en": "chapter {}, «{}»", "zh": "第 {} 章《{}》"}
HEADING_AFTER = r"^\({label}\)=\n#+ (.+)$"


def section(exercise: Exercise, part: Part) -> dict[str, dict[str, str]]:
    """`{"address": {"en", "zh"}, "title": {"en", "zh"}, "words": {"en", "zh"}}` of the section that teaches this part.

    `words` are what a reader is told: the chapter and the title.
    """
    title = {lang: _heading(exercise, part.section, lang) for lang in LANGUAGES}
    return {
        "address": {lang: f"{SITE}{lang}/{exercise.name}.html#{part.section}" for lang in LANGUAGES},
        "title": title,
        "words": {lang: WORDS[lang].format(exercise.chapter, title[lang]) for lang in LANGUAGES},
    }


@cache
def _heading(exercise: Exercise, label: str, lang: str) -> str:
    """The heading as the chapter writes it; the chapter's title where the package was installed without the book."""
    page = BOOK / lang / f"{exercise.name}.md"
    if not page.is_file():
        return exercise.title[lang]
    found = re.search(HEADING_AFTER.format(label=re.escape(label)), page.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise LookupError(f"book/{lang}/{exercise.name}.md: no section is labelled ({label})=")
    return found[1].strip().replace("`", "")
