"""Properties of every explorable."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from autograder.checks.translations import listed, parse

from .conftest import ROOT
from .test_every_page import WCAG

SCRIPTS = ROOT / "book" / "shared" / "static" / "explorables"
USED = {
    page: parse((ROOT / "book" / "en" / f"{page}.md").read_text(encoding="utf-8")).explorables for page in listed(ROOT)
}
PLACES = [(name, page) for page, names in USED.items() for name in names]
QUICK = WCAG | {"preload": False, "resultTypes": ["violations"]}  # no style sheet is fetched again
LIMIT = 12_000  # bytes, together with the shared code
each_explorable = pytest.mark.parametrize(("name", "page"), PLACES)


@pytest.fixture(scope="module", params=[(*place, lang) for place in PLACES for lang in ("en", "zh")], ids="-".join)
def shown(request, open_page):
    """A page with its explorable, not started yet, opened once for all its tests."""
    name, page, lang = request.param
    with open_page(f"{lang}/{page}.html") as page:
        yield page, f"abh-{name}"


def start(page, element):
    page.locator(element).scroll_into_view_if_needed()
    page.wait_for_selector(f"{element}[data-started]")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_layout_is_stable_when_it_starts_and_fits_the_screen(shown, width):
    page, element = shown
    page.set_viewport_size({"width": width, "height": 900})
    page.reload()
    height = "element => document.querySelector(element).getBoundingClientRect().height"
    before = page.evaluate(height, element)
    start(page, element)
    assert page.evaluate(height, element) == pytest.approx(before, abs=1)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    inside = "e => [...e.querySelectorAll('*')].every(child => child.getBoundingClientRect().right <= innerWidth)"
    assert page.locator(element).evaluate(inside)


def test_it_uses_the_language_of_the_page_and_no_other_host(shown):
    page, element = shown
    start(page, element)
    said = page.locator(f"figure:has(> {element})").evaluate("e => e.getAttribute('aria-label') + e.innerText")
    assert bool(re.search("[一-鿿]", said)) == ("/zh/" in page.url)
    assert page.faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violations_after_it_has_started(shown, scheme):
    page, element = shown
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
    start(page, element)
    found = Axe().run(page, context=element, options=QUICK).response["violations"]
    assert [(v["id"], [node["target"] for node in v["nodes"]][:3]) for v in found] == []


@each_explorable
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_javascript_a_fallback_is_shown(visit, name, page, lang):
    without = visit(f"{lang}/{page}.html", java_script_enabled=False)
    assert len(without.locator(f"abh-{name} p").first.inner_text()) > 10
    assert without.locator(f"abh-{name} :is(button, input)").count() == 0


@each_explorable
def test_its_code_is_small(name, page):
    files = (SCRIPTS / f"{name}.js", SCRIPTS / "base.js")
    assert sum(file.stat().st_size for file in files) < LIMIT


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_page_loads_only_its_own_explorables(site, lang):
    for page, names in USED.items():
        text = (site / lang / f"{page}.html").read_text(encoding="utf-8")
        assert set(re.findall(r'src="_static/explorables/([\w-]+)\.js', text)) == set(names)
        assert ("explorables.css" in text) == bool(names)


def test_every_script_is_used_by_a_page():
    written = {path.stem for path in SCRIPTS.glob("*.js")} - {"base"}
    assert written == {name for name, _ in PLACES}
