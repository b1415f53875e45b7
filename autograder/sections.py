"""Where the book teaches a part: the address and the title of its section, in both languages."""

import re
from dataclasses import dataclass
from functools import cache

from .catalogue import Exercise, Part
from .course import PACKAGE
from .language import Text

SITE = "https://attention-by-hand.github.io/"  # the same as in _config.yml, which is not installed with the package
BOOK = PACKAGE.parent / "book"
WORDS = Text('chapter {}, "{}"', "第 {} 章《{}》")
HEADING_AFTER = r"^\({label}\)=\n#+ (.+)$"


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the book. `words` is the text shown to readers: the chapter and the title."""

    address: Text
    title: Text
    words: Text


@cache
def section(exercise: Exercise, part: Part) -> Section:
    """The section that teaches this part."""
    title = Text.each(lambda lang: _heading(exercise, part.section, lang))
    return Section(
        address=Text.each(lambda lang: f"{SITE}{lang}/{exercise.name}.html#{part.section}"),
        title=title,
        words=Text.each(lambda lang: WORDS[lang].format(exercise.chapter, title[lang])),
    )


@cache
def _heading(exercise: Exercise, label: str, lang: str) -> str:
    """The heading in the chapter. Where the package is installed without the book: the title of the exercise."""
    page = BOOK / lang / f"{exercise.name}.md"
    if not page.is_file():
        return exercise.title[lang]
    found = re.search(HEADING_AFTER.format(label=re.escape(label)), page.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise LookupError(f"book/{lang}/{exercise.name}.md: no section is labelled ({label})=")
    return found[1].strip().replace("`", "")
