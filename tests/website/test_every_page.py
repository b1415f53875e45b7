"""Every page, in both languages, in a real browser."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from fontTools.ttLib import TTFont

from autograder.checks.translations import listed

from .conftest import ROOT, settled

PAGES = [f"{lang}/{name}.html" for lang in ("en", "zh") for name in [*listed(ROOT), "search", "genindex"]]
WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
# A page has thousands of code words and formula pieces of a few dozen kinds. axe checks one of each kind and sees the others
# as plain text. This changes the page, so it is done last.
ONE_OF_EACH_KIND = """
const seen = new Set();
const keepOne = (thing, kind) => {
  if (seen.has(kind)) thing.replaceWith(thing.textContent);
  seen.add(kind);
};
for (const word of document.querySelectorAll("pre span[class]:not(:has(*))"))
  keepOne(word, word.className + " in " + word.closest("div.highlight")?.parentElement.parentElement.className);
for (const formula of document.querySelectorAll("mjx-container")) {
  const around = formula.parentElement.parentElement;
  keepOne(formula, formula.hasAttribute("display") + " in " + around.tagName + " in " + around.parentElement.className);
}
"""
each_page = pytest.mark.parametrize("path", PAGES)


class Anchors(HTMLParser):
    """The links, images and anchors of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[key] for key in ("id", "name") if key in given}
        self.links += [given[key] for key in ("href", "src") if given.get(key)]


@pytest.fixture(scope="module")
def anchors(site):
    return {
        str(path.relative_to(site)): Anchors(path.read_text(encoding="utf-8"))
        for path in [site / "index.html", *site.glob("*/*.html")]
    }


@pytest.fixture(scope="module", params=PAGES)
def opened(request, open_page):
    """A page, opened once for all its tests."""
    with open_page(request.param) as page:
        yield page


def test_no_request_goes_to_another_host_and_nothing_fails(opened):
    opened.evaluate("for (const image of document.images) image.loading = 'eager'")
    opened.wait_for_function("[...document.images].every(image => image.complete)")
    broken = opened.evaluate("[...document.images].filter(image => !image.naturalWidth).map(image => image.src)")
    assert (opened.faults, broken) == ([], [])


def test_every_formula_is_typeset(opened):
    raw = "[...document.querySelectorAll('.math')].filter(m => !m.querySelector('mjx-container')).map(m => m.innerText)"
    wrong = "[...document.querySelectorAll('mjx-merror')].map(m => m.textContent)"
    assert (opened.evaluate(raw), opened.evaluate(wrong)) == ([], [])


def test_every_icon_is_in_the_font(opened, site):
    drawn = opened.evaluate(
        "[...document.querySelectorAll('*')].flatMap(e => ['::before', '::after'].map(p => getComputedStyle(e, p)))"
        ".filter(s => /[\\ue000-\\uf8ff]/.test(s.content)).map(s => [s.fontFamily.split(',')[0], s.content])"
    )
    font = TTFont(site / "en" / "_static" / "icons.woff").getBestCmap()
    assert drawn
    assert {family for family, _ in drawn} == {'"Course Icons"'}
    assert [content for _, content in drawn if not all(ord(c) in font for c in content.strip('"'))] == []


def test_a_phone_needs_no_horizontal_scrolling(opened):
    opened.set_viewport_size({"width": 390, "height": 844})
    opened.wait_for_timeout(100)
    width = opened.evaluate("document.documentElement.scrollWidth")
    wide = opened.evaluate(
        "[...document.querySelectorAll('.bd-article > section *')].filter(e => e.getBoundingClientRect().right > 391 "
        "&& !e.closest('pre, table, div.math, mjx-assistive-mml')).map(e => e.outerHTML.slice(0, 120)).slice(0, 3)"
    )
    opened.set_viewport_size({"width": 1280, "height": 900})
    assert (width, wide) == (390, [])


def test_buttons_and_labels_are_chinese_on_chinese_pages(opened):
    if "/zh/" not in opened.url:
        assert opened.evaluate("document.documentElement.lang") == "en"
        return
    said = opened.evaluate(
        "[...document.querySelectorAll('[title], [aria-label], [placeholder], button, .prev-next-subtitle, summary')]"
        ".filter(e => !e.closest('mjx-container, pre, code, nav.bd-links, a.reference, [lang=en]'))"
        ".flatMap(e => [e.title, e.getAttribute('aria-label'), e.placeholder, e.closest('article') ? '' : e.innerText])"
    )
    names = re.compile(r"Ctrl|⌘|softmax|dropout|notebook|Colab|Binder|PyTorch|ViT|FlashAttention", re.IGNORECASE)
    assert [text for text in said if text and re.search("[A-Za-z]{3}", names.sub("", text))] == []
    assert opened.evaluate("document.documentElement.lang") == "zh-CN"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_accessibility_violations(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    opened.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
    opened.evaluate(ONE_OF_EACH_KIND)
    found = Axe().run(opened, options=WCAG).response["violations"]
    assert [(v["id"], [node["target"] for node in v["nodes"]][:3]) for v in found] == []


@each_page
def test_every_internal_link_works(anchors, site, path):
    lost = []
    for link in anchors[path].links:
        address, fragment = urldefrag(link)
        if urlsplit(address).scheme:
            continue
        target = (site / path).parent / unquote(urlsplit(address).path) if address else site / path
        target = target.resolve()
        if not target.is_file():
            lost.append(link)
        elif fragment and target.suffix == ".html":
            name = str(target.relative_to(site))
            if unquote(fragment) not in anchors[name].ids:
                lost.append(link)
    assert lost == []


@each_page
def test_each_language_links_to_the_other(site, path):
    text = (site / path).read_text(encoding="utf-8")
    assert 'hreflang="en"' in text
    assert 'hreflang="zh-CN"' in text
    assert re.search(r'<meta property="og:(title|image)"', text) or path.split("/")[1] in (
        "search.html",
        "genindex.html",
    )


def test_a_page_can_be_printed(visit):
    page = visit("en/06_masks.html")
    page.emulate_media(media="print")
    settled(page)
    shown = "s => { const e = document.querySelector(s); return e && getComputedStyle(e).display !== 'none'; }"
    assert page.evaluate(shown, "article.bd-article")
    for furniture in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article", ".prev-next-area"):
        assert not page.evaluate(shown, furniture)
