"""How many bytes a reader has to load."""

import pytest

FIRST_VISIT, NEXT_PAGE = 700_000, 100_000


def transferred(browser, address, paths) -> list[int]:
    """The bytes that are transferred for each page in turn, with every picture."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    total = [0]
    session.on("Network.loadingFinished", lambda event: total.__setitem__(0, total[0] + event["encodedDataLength"]))
    sizes = []
    for path in paths:
        total[0] = 0
        page.goto(f"{address}/{path}")
        for y in range(0, page.evaluate("document.documentElement.scrollHeight"), 800):
            page.evaluate("y => scrollTo({top: y, behavior: 'instant'})", y)
            page.wait_for_timeout(20)
        page.wait_for_load_state("networkidle")
        sizes.append(total[0])
    context.close()
    return sizes


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_first_visit_and_the_next_page_are_small(browser, address, site, lang):
    chapters = sorted(path.stem for path in (site / "en").glob("[0-9]*.html"))
    first, *others = transferred(browser, address, [f"{lang}/{name}.html" for name in chapters])
    assert first <= FIRST_VISIT
    for name, size in zip(chapters[1:], others, strict=True):
        assert size <= NEXT_PAGE, name
        assert first + size <= FIRST_VISIT, name  # more than a first visit to this chapter takes


def test_unused_assets_are_left_out(site):
    unwanted = [str(path) for path in site.rglob("*") if path.suffix == ".map" or "fontawesome" in str(path).lower()]
    assert unwanted == []
    for path in site.glob("*/*.html"):
        text = path.read_text(encoding="utf-8").lower()
        assert "thebe" not in text
        assert "fontawesome" not in text
