"""The two books have the same content, and every difference is reported by file."""

import shutil

import pytest

from autograder.checks.translations import accept, faults, fingerprint, listed, parse

PAGE = "06_masks"


@pytest.fixture
def book(tmp_path, root):
    for lang in ("en", "zh"):
        (tmp_path / "book" / lang).mkdir(parents=True)
        shutil.copy(root / "book" / lang / f"{PAGE}.md", tmp_path / "book" / lang)
    (tmp_path / "_toc.yml").write_text(f"root: {PAGE}\nparts: []\n", encoding="utf-8")
    accept(tmp_path, PAGE)
    return tmp_path


def test_the_books_have_the_same_content(root):
    assert list(faults(root)) == []


def test_an_unchanged_copy_has_no_faults(book):
    assert list(faults(book)) == []


def edit(book, lang, old, new):
    path = book / "book" / lang / f"{PAGE}.md"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("import torch\n", "import torch  # PyTorch\n", "code 1 is"),
        ("(masks-idea)=", "(masks-thought)=", "labels 2 is 'masks-thought'"),
        ("(masks-idea)=\n## ", "(masks-idea)=\n### ", "headings 2 is '###'"),
        ("j \\le i", "j < i", "formulas 1 is"),
        ("name: fig-masks-patterns", "name: fig-masks-motifs", "figures 1 is 'fig-masks-motifs'"),
        ("```{exercise} 06_masks\n", "```{exercise} 05_softmax\n", "exercises 1 is '05_softmax'"),
        ("```{explorable} mask-painter\n", "```{explorable} mask-printer\n", "explorables 1 is 'mask-printer'"),
    ],
)
def test_a_chinese_page_with_other_content_is_found(book, old, new, complaint):
    edit(book, "zh", old, new)
    found = list(faults(book))
    assert len(found) == 1
    assert found[0].startswith(f"book/zh/{PAGE}.md: {complaint}")


def test_an_outdated_chinese_page_is_found_until_it_is_recorded(book):
    path = book / "book" / "en" / f"{PAGE}.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nOne more sentence.\n", encoding="utf-8")
    assert [fault.split(";")[0] for fault in faults(book)] == [
        f"book/zh/{PAGE}.md: written from another English text than today's"
    ]
    assert accept(book, PAGE)
    assert list(faults(book)) == []


def test_missing_and_unlisted_pages_are_found(book):
    (book / "book" / "zh" / f"{PAGE}.md").rename(book / "book" / "zh" / "06_mask.md")
    assert set(faults(book)) == {f"missing: book/zh/{PAGE}.md", "unlisted: book/zh/06_mask.md"}


def test_a_label_used_twice_is_found(book):
    for lang in ("en", "zh"):
        shutil.copy(book / "book" / lang / f"{PAGE}.md", book / "book" / lang / "07_again.md")
    (book / "_toc.yml").write_text(
        f"root: {PAGE}\nparts: [{{caption: x, chapters: [{{file: 07_again}}]}}]\n", encoding="utf-8"
    )
    assert f"book/en/07_again.md: the label masks is taken by {PAGE}" in list(faults(book))


def test_words_inside_a_formula_may_be_translated():
    assert parse("$$\nx \\text{ else}\n$$ (eq-x)\n") == parse("$$\nx \\text{ 否则}\n$$ (eq-x)\n")


def test_every_chapter_has_its_exercise_card_figures_and_formulas(root):
    for name in listed(root):
        if name[:2].isdigit():
            page = parse((root / "book" / "en" / f"{name}.md").read_text(encoding="utf-8"))
            assert page.exercises == [name]
            assert page.figures
            assert page.formulas
            assert all(label.startswith("eq-") for label, _ in page.formulas)
            assert len(page.labels) == len(page.headings)


def test_the_fingerprint_changes_with_the_text():
    assert fingerprint("a") != fingerprint("b")
