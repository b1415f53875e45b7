"""The class report and a feedback page in a real browser: no network, no errors, both languages, print and phone."""

import contextlib
import random

import pytest
from axe_playwright_python.sync_playwright import Axe
from fake_results import HOSTILE_NAMES, fake_class, hostile_class

from autograder.reports import write

THREE_MB = 3 * 2**20
WCAG = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "resultTypes": ["violations"],  # passing rows need not be listed
}


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    out = tmp_path_factory.mktemp("thousand")
    write.write_all(fake_class(1000), out, "en")
    return out


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    out = tmp_path_factory.mktemp("few")
    write.write_all(fake_class(30), out, "en")
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    out = tmp_path_factory.mktemp("hostile")
    write.write_all(hostile_class(), out, "en")
    return out


@pytest.fixture(scope="module")
def opened(browser):
    """Open a file as an instructor does; `page.faults` holds errors, dialogs and requests to other hosts."""

    @contextlib.contextmanager
    def open_file(path, width=1280, **settings):
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        page = context.new_page()
        page.faults = []
        page.on("console", lambda message: page.faults.append(message.text))
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("dialog", lambda dialog: (page.faults.append(dialog.message), dialog.dismiss()))
        page.on(
            "request", lambda request: request.url.startswith(("file:", "data:")) or page.faults.append(request.url)
        )
        page.goto(path.as_uri())
        yield page
        context.close()

    return open_file


def the_report(out):
    return out / "class.html"


def a_feedback(out):
    return out / "student0001" / "06_masks.html"


each_page = pytest.mark.parametrize("which", [the_report, a_feedback])


def test_a_report_on_a_thousand_students_is_small(thousand):
    assert the_report(thousand).stat().st_size < THREE_MB


def the_faults(page) -> list[str]:
    found = Axe().run(page, options=WCAG)
    return page.faults + ([found.generate_report()] if found.violations_count else [])


def test_a_report_on_a_thousand_students_opens_without_errors_and_is_accessible(thousand, opened):
    with opened(the_report(thousand)) as page:
        assert the_faults(page) == []


@each_page
@pytest.mark.parametrize(("scheme", "locale", "width"), [("light", "en-GB", 1280), ("dark", "zh-CN", 390)])
def test_a_page_uses_the_readers_language_fits_and_is_accessible(few, opened, which, scheme, locale, width):
    with opened(which(few), width, color_scheme=scheme, locale=locale) as page:
        assert page.evaluate("document.documentElement.lang") == ("zh-CN" if locale == "zh-CN" else "en")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert the_faults(page) == []


@each_page
def test_the_button_switches_the_language_and_hides_the_other(few, opened, which):
    with opened(which(few), locale="en-GB") as page:
        english = page.inner_text("main")
        page.click("#language")
        chinese = page.inner_text("main")
        assert page.inner_text("#language") == "English"
        assert "错误" in chinese
        assert "错误" not in english
        assert page.locator(".en:visible").count() == 0
        page.click("#language")
        assert page.inner_text("main") == english


def test_the_table_can_be_sorted_by_keyboard_and_announces_it(thousand, opened):
    with opened(the_report(thousand)) as page:
        table = page.locator("#all ~ .wide table")
        score = table.locator("th", has_text="Score")
        for direction in ("ascending", "descending"):
            score.locator("button").focus()
            page.keyboard.press("Enter")
            assert score.get_attribute("aria-sort") == direction
            shown = table.locator("td[data-number]:nth-child(3)").evaluate_all("all => all.map(c => +c.dataset.number)")
            assert len(shown) == 1000
            assert shown == sorted(shown, reverse=direction == "descending")
        table.locator("th", has_text="Student").locator("button").press("Space")
        assert score.get_attribute("aria-sort") is None
        names = table.locator("td:first-child").all_inner_texts()
        assert names == sorted(names)


def test_without_scripts_the_chosen_language_is_shown(tmp_path, opened):
    write.write_all(fake_class(3), tmp_path, "zh")
    with opened(the_report(tmp_path), java_script_enabled=False, locale="en-GB") as page:
        assert page.inner_text("h1") == "班级报告"
        assert not page.locator("#language").is_visible()


def test_a_printed_report_has_no_buttons(thousand, opened):
    with opened(the_report(thousand)) as page:
        page.emulate_media(media="print")
        assert not page.locator("#language").is_visible()
        assert page.locator("#all").is_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_nothing_that_a_student_wrote_runs_or_is_loaded(hostile, opened):
    feedback = [path for path in sorted(hostile.rglob("*.html")) if path.is_file()]
    assert len(feedback) > len(HOSTILE_NAMES)
    for path in [the_report(hostile), *random.Random(0).sample(feedback, 4)]:
        with opened(path) as page:
            assert page.faults == []
            assert page.locator("main img, main script, main b").count() == 0


def test_every_link_to_a_feedback_page_works(hostile, opened):
    with opened(the_report(hostile)) as page:
        links = page.locator("#all ~ .wide a").evaluate_all("all => all.map(a => a.href)")
        assert len(links) == len(hostile_class())
        for link in links:
            page.goto(link)
            assert page.locator("h1").is_visible()
