"""Compare the English and the Chinese book: same pages, labels, code, formulas and figures, and no outdated Chinese page.

The front matter of a Chinese page contains the hash of the English text that it was written from. After a revision,
`autograder record translation 06_masks` updates the hash.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import yaml

from autograder.errors import InputError
from autograder.language import LANGUAGES

BOOK = "book"
FRONT_MATTER = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
CODE_CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CELL_OPTIONS = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
FORMULA = re.compile(r"^\$\$\n(.*?)^\$\$(?: \(([\w-]+)\))?$", re.DOTALL | re.MULTILINE)
WORDS_IN_FORMULA = re.compile(r"\\text\{[^{}]*\}")
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
WRITTEN_FROM = re.compile(r"^written_from:.*$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """What both languages must share, in order."""

    labels: list[str]
    headings: list[str]  # their levels
    code: list[str]
    formulas: list[tuple[str, str]]
    figures: list[str]
    exercises: list[str]
    explorables: list[str]


def listed(root: Path) -> list[str]:
    """The pages in the order of the table of contents."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]


def fingerprint(text: str) -> str:
    """A short hash of the text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def parse(text: str) -> Page:
    body = FRONT_MATTER.sub("", text)
    code, figures = [], []
    for cell in CODE_CELL.findall(body):
        options = CELL_OPTIONS.match(cell)
        settings = yaml.safe_load(options[1]) if options else {}
        if "figure" in settings.get("mystnb", {}):
            figures.append(settings["mystnb"]["figure"]["name"])
        code.append(CELL_OPTIONS.sub("", cell).strip())
    prose = re.sub(r"^```.*?^```$", "", CODE_CELL.sub("", body), flags=re.DOTALL | re.MULTILINE)
    formulas = [(label, " ".join(WORDS_IN_FORMULA.sub("", tex).split())) for tex, label in FORMULA.findall(body)]
    exercises, explorables = (re.findall(rf"^```\{{{kind}\}} (\S+)", body, re.M) for kind in ("exercise", "explorable"))
    return Page(LABEL.findall(prose), HEADING.findall(prose), code, formulas, figures, exercises, explorables)


def faults(root: Path) -> Iterator[str]:
    """All differences between the two books that must not exist."""
    names = listed(root)
    for lang in LANGUAGES:
        present = {path.stem for path in (root / BOOK / lang).glob("*.md")}
        yield from (f"missing: {BOOK}/{lang}/{name}.md" for name in names if name not in present)
        yield from (f"unlisted: {BOOK}/{lang}/{name}.md" for name in sorted(present - set(names)))
    labels: dict[str, str] = {}
    for name in names:
        paths = [root / BOOK / lang / f"{name}.md" for lang in LANGUAGES]
        if all(path.is_file() for path in paths):
            english, chinese = (path.read_text(encoding="utf-8") for path in paths)
            yield from _differences(name, parse(english), parse(chinese))
            yield from _staleness(name, english, chinese)
            for label in parse(english).labels:
                if label in labels:
                    yield f"{BOOK}/en/{name}.md: the label {label} is taken by {labels[label]}"
                labels[label] = name


def _differences(name: str, english: Page, chinese: Page) -> Iterator[str]:
    for field in vars(english):
        for number, (en, zh) in enumerate(zip_longest(getattr(english, field), getattr(chinese, field)), 1):
            if en != zh:
                yield f"{BOOK}/zh/{name}.md: {field} {number} is {_short(zh)}; in English it is {_short(en)}"
                break


def _short(thing: object) -> str:
    text = repr(thing)
    return "missing" if thing is None else text if len(text) < 80 else text[:77] + "…"


def _staleness(name: str, english: str, chinese: str) -> Iterator[str]:
    front = FRONT_MATTER.match(chinese)
    written_from = (yaml.safe_load(front[1]) or {}).get("written_from") if front else None
    if written_from != fingerprint(english):
        yield (
            f"{BOOK}/zh/{name}.md: written from another English text than today's; "
            f"revise it, then run `autograder record translation {name}`"
        )


def accept(root: Path, name: str) -> bool:
    """Record in the Chinese page that it agrees with the current English page."""
    english = (root / BOOK / "en" / f"{name}.md").read_text(encoding="utf-8")
    path = root / BOOK / "zh" / f"{name}.md"
    chinese = path.read_text(encoding="utf-8")
    front = FRONT_MATTER.match(chinese)
    if front is None or not WRITTEN_FROM.search(front[0]):
        raise InputError(
            f"{path}: its front matter has no line `written_from:`",
            f"{path}：文件开头的 front matter 里没有 written_from: 这一行",
        )
    revised = WRITTEN_FROM.sub(f"written_from: '{fingerprint(english)}'", chinese, count=1)
    path.write_text(revised, encoding="utf-8")
    return revised != chinese
