"""The built site on a local server, and a real browser."""

import contextlib
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def site(request) -> Path:
    """The site, rebuilt only if something has changed."""
    done = subprocess.run(
        [sys.executable, ROOT / "book" / "build.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return ROOT / "_build" / "site"


@pytest.fixture(scope="session")
def address(site) -> str:
    from serve import server

    serving = server(site)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


@pytest.fixture(scope="session")
def browser() -> Browser:
    if CHROMIUM is None:
        pytest.fail("no Chromium on this machine: `make browser` installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def open_page(browser, address):
    """Open a page of the site in a new browser context; `page.faults` holds what went wrong."""

    @contextlib.contextmanager
    def opened(path: str, width: int = 1280, **settings):
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, reduced_motion="reduce", **settings)
        page = context.new_page()
        page.faults = []
        page.on("request", lambda request: note_other_host(page, request.url, address))
        page.on("console", lambda message: message.type == "error" and page.faults.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: page.faults.append(f"error: {error}"))
        page.on(
            "response", lambda answer: answer.status >= 400 and page.faults.append(f"{answer.status}: {answer.url}")
        )
        page.goto(f"{address}/{path}")
        settled(page)
        yield page
        context.close()

    return opened


@pytest.fixture
def visit(open_page):
    """The same, for one test that may open several pages."""
    with contextlib.ExitStack() as stack:
        yield lambda *path, **settings: stack.enter_context(open_page(*path, **settings))


def note_other_host(page, url: str, address: str) -> None:
    if not url.startswith((address, "data:", "blob:")):
        page.faults.append(f"request to another host: {url}")


def settled(page) -> None:
    """Wait until everything is loaded and every formula is typeset."""
    page.wait_for_load_state("load")
    page.evaluate("window.MathJax?.startup?.promise")
