"""The learner's loop in real JupyterLab, in a real browser: a wrong answer is named, the right one is green."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest
from playwright.sync_api import Page, expect, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PATIENCE = 240_000  # milliseconds; a loaded machine takes long to start a kernel
TRIES = 12
expect.set_options(timeout=PATIENCE)
WRONG = "def causal_mask(q_len, k_len=None):\n    return torch.ones(q_len, k_len or q_len).triu(1).bool()"
RIGHT = (
    "def causal_mask(q_len, k_len=None):\n    k_len = q_len if k_len is None else k_len\n"
    "    return torch.ones(q_len, k_len).tril(k_len - q_len).bool()"
)


@pytest.fixture(scope="module")
def lab(root, tmp_path_factory):
    """The address of a JupyterLab with a copy of one exercise. It does not touch the user's own settings."""
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(root / "exercises" / "06_masks", home / "exercises" / "06_masks")
    places = {name: str(home / name.lower()) for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR",
              "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR")}  # fmt: skip
    for place in places.values():
        os.makedirs(place)
    own = {"PYTHONPATH": str(root), "AUTOGRADER_LANG": "en", "AUTOGRADER_PROGRESS": str(home / "progress.json")}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0", "--ServerApp.ip=127.0.0.1",
               f"--ServerApp.root_dir={home / 'exercises'}", "--LabApp.news_url=None",
               "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]  # fmt: skip
    with open(home / "log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(command, cwd=home, env=os.environ | places | own, stdout=log, stderr=log)
    try:
        yield _address(server, home)
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(timeout=30)
        server.kill()


def _address(server, home) -> str:
    about = home / "jupyter_runtime_dir" / f"jpserver-{server.pid}.json"
    for _ in range(PATIENCE // 200):
        if about.is_file() and about.read_text().strip():
            told = json.loads(about.read_text())
            return f"{told['url']}lab/tree/06_masks/06_masks.ipynb?token={told['token']}"
        assert server.poll() is None, (home / "log").read_text()[-3000:]
        time.sleep(0.2)
    pytest.fail("JupyterLab did not start: " + (home / "log").read_text()[-3000:])


@pytest.fixture
def notebook(lab):
    if CHROMIUM is None:
        pytest.fail("no Chromium on this machine: `make browser` installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(PATIENCE)
        page.goto(lab)
        yield page
        browser.close()


def run(page: Page, marked: str, code: str | None = None):
    """Run the cell that contains `marked`, with `code` typed into it if given; returns the cell."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").filter(has_text=marked).first
    prompt = cell.locator(".jp-InputPrompt")
    before = prompt.inner_text()
    cell.locator(".cm-content").click()
    expect(cell).to_have_class(re.compile("jp-mod-active"))
    if code is not None:
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(code)
        expect(cell.locator(".cm-content")).to_contain_text(code.split("\n")[-1].strip())
    for _ in range(TRIES):  # a page that is still loading may miss the first key press
        page.keyboard.press("Control+Enter")
        with contextlib.suppress(AssertionError):
            expect(prompt).not_to_have_text(before, timeout=PATIENCE / TRIES)
            break
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"))
    return cell


def test_a_wrong_answer_is_named_and_the_right_one_is_green(notebook, root):
    pictures = root / "_build" / "jupyterlab"
    pictures.mkdir(parents=True, exist_ok=True)
    expect(notebook.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")).to_be_attached()
    run(notebook, "from autograder import check, hint")
    run(notebook, "def causal_mask(q_len", WRONG)
    card = run(notebook, 'check("causal_mask")').locator(".jp-OutputArea")
    expect(card).to_contain_text("The mask is upside down")
    expect(card.locator("td").first).to_be_visible()
    card.screenshot(path=pictures / "wrong.png")
    run(notebook, "def causal_mask(q_len", RIGHT)
    card = run(notebook, 'check("causal_mask")').locator(".jp-OutputArea")
    expect(card).to_contain_text("right")
    expect(card).to_contain_text("3/3")
    expect(card).not_to_contain_text("✗")
    notebook.screenshot(path=pictures / "right.png")
