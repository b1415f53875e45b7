"""Fixtures for all tests."""

import os
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session", autouse=True)
def english():
    """Messages in English whatever the machine's locale."""
    os.environ["AUTOGRADER_LANG"] = "en"


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """Tests that a script starts in the background ignore Ctrl-C, and so would the commands that they start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_progress(tmp_path_factory, monkeypatch):
    """No test writes to the user's own progress file, or to that of another test."""
    monkeypatch.setenv("AUTOGRADER_PROGRESS", str(tmp_path_factory.mktemp("progress") / "progress.json"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
