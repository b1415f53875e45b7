"""Saved progress, `check --watch` and the progress page."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from autograder.catalogue import catalogue, find
from autograder.checks.samples import hand_in, solution, with_mistake
from autograder.cli import main
from autograder.language import Text
from autograder.learner import progress
from autograder.learner.check_files import first_open, progress_table
from autograder.learner.progress_page import page
from autograder.mistakes import mistakes_of
from autograder.results import NamedMistake, PartReport
from autograder.verdicts import Verdict

MASKS, DROPOUT = find("06_masks"), find("07_dropout")
INVERTED = next(mistake for mistake in mistakes_of(MASKS.module) if mistake.part == "causal_mask")
PATIENCE = 120


def record(name: str, verdict: Verdict, mistake: str | None = None, exercise=MASKS) -> None:
    """Record one check of a part."""
    part = exercise.part(name)
    points = part.points if verdict is Verdict.PASS else 0
    named = NamedMistake(mistake, Text(mistake, mistake)) if mistake else None
    progress.record(exercise, PartReport(part.name, points, part.points, verdict, mistake=named))


def test_a_mistake_is_overcome_when_the_part_is_right():
    record("causal_mask", Verdict.WRONG, INVERTED.name)
    record("causal_mask", Verdict.WRONG, INVERTED.name)
    met = progress.load()["06_masks"]["causal_mask"]["mistakes"][INVERTED.name]
    assert (met["times"], met["overcome"]) == (2, None)
    record("causal_mask", Verdict.PASS)
    entry = progress.load()["06_masks"]["causal_mask"]
    assert entry["mistakes"][INVERTED.name]["overcome"]
    assert (entry["checks"], entry["score"]) == (3, 3)


@pytest.mark.parametrize(
    "damage",
    ["{", "", "[]", '{"schema": 9}', '{"schema": 1, "exercises": {"06_masks": {"causal_mask": {"score": "x"}}}}'],
)
def test_a_damaged_file_is_renamed_and_never_lost(damage):
    progress.place().write_text(damage)
    record("causal_mask", Verdict.PASS)
    assert progress.place().with_name("progress.json.damaged").read_text() == damage
    assert progress.load()["06_masks"]["causal_mask"]["verdict"] == "pass"


def test_checks_work_where_progress_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (str(tmp_path / "file" / "progress.json"), ""):
        monkeypatch.setenv(progress.PLACE, place)
        record("causal_mask", Verdict.PASS)
    assert (tmp_path / "file").read_text() == ""


def test_watch_begins_where_the_learner_stopped():
    exercises = list(catalogue().values())
    assert first_open(exercises) is exercises[0]
    record("attention_dropout", Verdict.WRONG, exercise=DROPOUT)
    assert first_open(exercises) is DROPOUT
    for part in DROPOUT.parts:
        record(part.name, Verdict.PASS, exercise=DROPOUT)
    assert first_open(exercises) is exercises[0]


def test_the_table_counts_finished_parts_and_open_mistakes(capsys):
    record("causal_mask", Verdict.PASS)
    record("padding_mask", Verdict.WRONG, INVERTED.name)
    progress_table("en", Console(width=160))
    row = next(line for line in capsys.readouterr().out.splitlines() if "06_masks" in line)
    assert re.search(r"1/5.*3/20.*1", row)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(("width", "terminal"), [(80, True), (80, False), (50, True)])
def test_the_table_never_cuts_names(capsys, lang, width, terminal):
    progress_table(lang, Console(width=width, force_terminal=terminal, color_system=None))
    shown = capsys.readouterr().out
    assert all(name in shown for name in catalogue())
    assert width < 80 or "…" not in shown


def test_the_page_shows_mistakes_in_both_languages():
    record("causal_mask", Verdict.WRONG, INVERTED.name)
    record("causal_mask", Verdict.PASS)
    shown = page("zh")
    assert shown.startswith("<!doctype html>")
    for text in (INVERTED.text.zh, INVERTED.text.en, "1 of 1 mistakes overcome", "克服了 1/1 个错误"):
        assert text in shown
    assert "default-src 'none'" in shown
    assert not re.search(r"<script|\sstyle=|src=", shown)


def test_the_page_escapes_the_progress_file():
    record("causal_mask", Verdict.WRONG, "<script>alert(1)</script>")
    assert "<script>" not in page("en")


def test_check_html_writes_the_page_and_says_where(capsys, tmp_path):
    assert main(["check", "--html", str(tmp_path / "mine.html"), "--lang", "en"]) == 0
    assert "mine.html" in capsys.readouterr().out
    assert "<meter" in (tmp_path / "mine.html").read_text(encoding="utf-8")
    assert main(["check", "--html", str(tmp_path / "no" / "mine.html"), "--lang", "en"]) == 2


WATCH = """
import sys
from pathlib import Path
from rich.console import Console
from autograder.catalogue import find
from autograder.learner.watch import watch
watch([find("06_masks"), find("07_dropout")], "en", Console(width=160), Path(sys.argv[1]))
print("left in peace")
"""


def test_a_saved_notebook_is_checked_again_and_ctrl_c_ends_cleanly(tmp_path, root):
    hand_in(tmp_path, "exercises", MASKS, with_mistake(MASKS, INVERTED))
    hand_in(tmp_path, "exercises", DROPOUT, solution(DROPOUT))
    log = tmp_path / "log"
    with open(log, "w", encoding="utf-8") as out:
        watching = subprocess.Popen(
            [sys.executable, "-u", "-c", WATCH, str(tmp_path)], cwd=root, stdout=out, stderr=out
        )
    try:
        wait_for(lambda: "watching 2 notebooks" in log.read_text(encoding="utf-8"), watching)
        assert INVERTED.text.en in log.read_text(encoding="utf-8")
        hand_in(tmp_path, "exercises", MASKS, solution(MASKS))
        wait_for(lambda: "20/20" in log.read_text(encoding="utf-8"), watching)
        wait_for(lambda: "waiting for the next save" in log.read_text(encoding="utf-8"), watching)
        assert log.read_text(encoding="utf-8").count("progress is kept in") == 1
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=PATIENCE) == 0
    finally:
        watching.kill()
    shown = log.read_text(encoding="utf-8")
    assert "the same command goes on from here" in shown.rpartition("progress is kept in")[2]
    assert "left in peace" in shown
    assert "Traceback" not in shown
    kept = json.loads(progress.place().read_text(encoding="utf-8"))["exercises"]["06_masks"]["causal_mask"]
    assert kept["mistakes"][INVERTED.name]["overcome"]


def wait_for(condition, process) -> None:
    for _ in range(PATIENCE * 5):
        if condition():
            return
        assert process.poll() is None
        time.sleep(0.2)
    pytest.fail("nothing happened")
