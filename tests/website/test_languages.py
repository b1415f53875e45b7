"""The language switch leads to the same page and section in the other language, and back."""

import xml.etree.ElementTree as ET

import pytest

from autograder.checks.translations import listed, parse

from .conftest import ROOT, settled

CHAPTERS = [name for name in listed(ROOT) if name[:2].isdigit()]
AT_THE_TOP = "id => Math.abs(document.getElementById(id).getBoundingClientRect().top) < 200"


# Punctuation that a line break separates from its formula, and formulas that are wider than the text.
ASTRAY = """() => {
  const article = document.querySelector(".bd-article"), faults = [];
  const marks = {nextSibling: /^[，。、；：？！）」』》…]/, previousSibling: /[（「『《]$/};
  for (const formula of article.querySelectorAll("span.math"))
    for (const [side, mark] of Object.entries(marks)) {
      const text = formula[side];
      if (text?.nodeType !== Node.TEXT_NODE || !mark.test(text.data)) continue;
      const range = document.createRange(), at = side === "nextSibling" ? 0 : text.length - 1;
      range.setStart(text, at); range.setEnd(text, at + 1);
      const a = range.getBoundingClientRect(), b = formula.getBoundingClientRect();
      if (side === "nextSibling" ? a.left < b.left : a.left > b.left) faults.push(text.data);
    }
  for (const whole of article.querySelectorAll(".unbroken"))
    if (whole.getBoundingClientRect().right > article.getBoundingClientRect().right + 1) faults.push(whole.textContent);
  return faults;
}"""


def switch(page) -> None:
    """Click the switch where it is, without scrolling to it first."""
    before = page.url
    button = page.locator(".article-header-buttons .language-switch").bounding_box()
    page.mouse.click(button["x"] + button["width"] / 2, button["y"] + button["height"] / 2)
    page.wait_for_url(lambda address: address != before)
    settled(page)


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_switch_goes_to_the_same_section_and_back(visit, name):
    """There on a wide screen, and back on a narrow one."""
    labels = parse((ROOT / "book" / "en" / f"{name}.md").read_text(encoding="utf-8")).labels
    section = labels[len(labels) // 2]
    page = visit(f"en/{name}.html#{section}", width=1280)
    for lang, width in (("zh", 1280), ("en", 390)):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("id => document.getElementById(id).scrollIntoView({behavior: 'instant'})", section)
        switch(page)
        assert page.url.endswith(f"/{lang}/{name}.html#{section}")
        page.wait_for_function(AT_THE_TOP, arg=section)
    assert page.faults == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_punctuation_is_never_separated_from_its_formula(visit, name):
    assert visit(f"zh/{name}.html", width=390).evaluate(ASTRAY) == []


def test_the_switch_keeps_the_scroll_position(visit):
    page = visit("en/06_masks.html")
    section = "masks-alignment"
    page.evaluate("id => document.getElementById(id).scrollIntoView({behavior: 'instant'})", section)
    page.mouse.wheel(0, 40)
    page.wait_for_timeout(200)
    switch(page)
    assert page.url.endswith(f"/zh/06_masks.html#{section}")


def test_the_switch_works_by_keyboard(visit):
    page = visit("zh/05_softmax.html", width=390)
    page.locator(".article-header-buttons .language-switch").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/en/05_softmax.html*")


@pytest.mark.parametrize(("locale", "lang"), [("zh-CN", "zh"), ("zh-TW", "zh"), ("en-GB", "en"), ("fr-FR", "en")])
def test_the_root_page_chooses_the_browsers_language(visit, locale, lang):
    page = visit("index.html", locale=locale)
    page.wait_for_url(f"**/{lang}/index.html")
    switch(page)
    assert f"/{'en' if lang == 'zh' else 'zh'}/index.html" in page.url
    page.goto(page.url.split("/en/")[0].split("/zh/")[0] + "/index.html")
    page.wait_for_url(f"**/{'en' if lang == 'zh' else 'zh'}/index.html")  # the choice is remembered


def test_the_root_page_offers_both_languages_without_javascript(visit):
    page = visit("index.html", java_script_enabled=False)
    assert page.locator("nav a").evaluate_all("links => links.map(a => a.getAttribute('href'))") == [
        "en/index.html",
        "zh/index.html",
    ]


def test_the_site_map_lists_every_page_in_both_languages(site):
    tree = ET.parse(site / "sitemap.xml")
    places = {place.text for place in tree.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")}
    for name in listed(ROOT):
        for lang in ("en", "zh"):
            ending = f"/{lang}/" if name == "index" else f"/{lang}/{name}.html"
            assert any(place.endswith(ending) for place in places)
