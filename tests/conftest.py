"""What several tests share."""

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
    """Tests started in the background by a script ignore Ctrl-C, and so would the commands they start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_progress(tmp_path_factory, monkeypatch):
    """No test writes into the progress of whoever runs it, nor into another test's."""
    monkeypatch.setenv("AUTOGRADER_PROGRESS", str(tmp_path_factory.mktemp("progress") / "progress.json"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
