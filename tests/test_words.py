"""Every text uses the terms of the glossary, and none of its forbidden variants."""

import json
import re
import tomllib

import pytest

from autograder.catalogue import catalogue
from autograder.mistakes import mistakes_of


@pytest.fixture(scope="module")
def terms(root):
    return tomllib.loads((root / "book/shared/glossary.toml").read_text(encoding="utf-8"))["term"]


def chinese_texts(root):
    """Every Chinese text, with its place."""
    for path in (root / "book/zh").glob("*.md"):
        yield path.relative_to(root), path.read_text(encoding="utf-8")
    for folder in ("solutions", "autograder/hints"):
        for path in (root / folder).rglob("*.*"):
            if path.suffix in (".ipynb", ".toml") and ".ipynb_checkpoints" not in path.parts:
                text = path.read_text(encoding="utf-8")
                if path.suffix == ".ipynb":
                    text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
                yield path.relative_to(root), text
    for exercise in catalogue().values():
        for mistake in mistakes_of(exercise.module):
            yield f"{exercise.name}: {mistake.name}", mistake.text.zh


def test_no_chinese_text_uses_a_forbidden_variant(root, terms):
    never = [variant for term in terms for variant in term.get("never", ())]
    assert never
    used = [(str(where), variant) for where, text in chinese_texts(root) for variant in never if variant in text]
    assert used == []


def test_every_term_is_named_and_explained_in_both_languages(terms):
    for term in terms:
        assert term["en"]
        assert term["zh"]
        assert all(term["says"][lang].strip() for lang in ("en", "zh"))
    for lang in ("en", "zh"):
        names = [term[lang] for term in terms]
        assert len(set(names)) == len(names)


def test_chinese_prose_uses_full_width_punctuation(root):
    """A half-width comma or full stop right after a Chinese character is a typing error."""
    typo = re.compile(r"[一-鿿][,;!?](?=\s|[一-鿿])")
    found = []
    for path in (root / "book/zh").glob("*.md"):
        prose = re.sub(
            r"^```.*?^```$|\$\$.*?\$\$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
        )
        prose = re.sub(r"`[^`]*`|\$[^$]*\$", "", prose)
        found += [(path.name, match.group()) for match in typo.finditer(prose)]
    assert found == []
