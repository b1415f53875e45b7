"""What several tests share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session", autouse=True)
def english():
    """Messages in English whatever the machine's locale."""
    os.environ["AUTOGRADER_LANG"] = "en"


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
