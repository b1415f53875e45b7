"""The audit accepts the course, and finds every fault that is put into it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import nbformat
import pytest

from autograder.catalogue import FILE, catalogue
from autograder.checks.audit import _is_rejected, _mistakes
from autograder.exam.examiner import examination
from autograder.exam.proxy import Local, Student
from autograder.mistakes import mistakes_of
from autograder.reference import ch05_softmax


def audit(folder, *exercises) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "autograder", "audit", *exercises],
        cwd=folder,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_whole_course_is_proved(root):
    done = audit(root)
    assert done.returncode == 0, done.stdout
    parts = sum(len(exercise.parts) for exercise in catalogue().values())
    assert f"proved: {len(catalogue())} exercises, {parts} parts" in done.stdout
    assert "; 0 faults" in done.stdout


@pytest.fixture
def copied(tmp_path, root):
    """A course of one exercise that may be broken."""
    keep = "05_softmax"
    others = [f"*{name}*" for name in catalogue() if name != keep]
    for name in ("autograder", "solutions", "exercises", "book"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", *others))
    for lang in ("en", "zh"):
        for page in (tmp_path / "book" / lang).glob("*.md"):
            if page.stem != keep:
                page.unlink()
    (tmp_path / "_toc.yml").write_text(f"root: {keep}\nparts: []\n", encoding="utf-8")
    head, *exercises = FILE.read_text(encoding="utf-8").split("[[exercise]]\n")
    kept = [text for text in exercises if f'name = "{keep}"' in text]
    (tmp_path / "autograder" / "catalogue.toml").write_text(head + "[[exercise]]\n" + kept[0], encoding="utf-8")
    return tmp_path


def replace_text(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def edit(path, cell_id, change):
    notebook = nbformat.read(path, as_version=4)
    cell = next(cell for cell in notebook.cells if cell.id == cell_id)
    cell.source = change(cell.source)
    nbformat.write(notebook, path)


def break_a_solution(course):
    path = course / "solutions/05_softmax/05_softmax.ipynb"
    edit(
        path,
        "answer-temperature_softmax",
        lambda s: s.replace("### BEGIN SOLUTION", "### BEGIN SOLUTION\n    return x"),
    )
    return "solutions/05_softmax/05_softmax.ipynb"


def repair_a_mistake(course):
    path = course / "autograder/mistakes/ch05_softmax.py"
    replace_text(path, "+ 1e-9)", "+ 0.0)")
    return "autograder/mistakes/ch05_softmax.py"


def edit_an_exercise(course):
    path = course / "exercises/05_softmax/05_softmax.ipynb"
    edit(path, "text-title", lambda s: s + "!")
    return "exercises/05_softmax/05_softmax.ipynb"


def solve_an_exercise(course):
    path = course / "exercises/05_softmax/05_softmax.ipynb"
    edit(
        path,
        "answer-temperature_softmax",
        lambda s: "import torch\ndef temperature_softmax(x, temperature, dim=-1):\n    return x",
    )
    return "exercises/05_softmax/05_softmax.ipynb"


def add_a_stray_file(course):
    (course / "solutions/05_softmax/notes.txt").write_text("?")
    return "unlisted: solutions/05_softmax/notes.txt"


def lose_the_hints(course):
    (course / "autograder/hints/05_softmax.toml").unlink()
    return "missing: autograder/hints/05_softmax.toml"


def forget_what_a_mistake_breaks(course):
    path = course / "autograder/symptoms/05_softmax.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    known[next(iter(known))].popitem()
    path.write_text(json.dumps(known), encoding="utf-8")
    return "autograder/symptoms/05_softmax.json"


def weaken_a_promise(course):
    path = course / "autograder/suites/test_05_softmax.py"
    path.write_text(path.read_text(encoding="utf-8") + WEAK, encoding="utf-8")
    return "autograder/suites/test_05_softmax.py: test_nothing is kept by nothing"


def leave_the_chinese_page_behind(course):
    path = course / "book/en/05_softmax.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nOne more sentence.\n", encoding="utf-8")
    return "book/zh/05_softmax.md: written from another English text"


WEAK = '''

@promise("logsumexp", en="It can be called.", zh="可以调用。")
def test_nothing(student, draw):
    """A promise that every answer keeps."""
'''


@pytest.mark.parametrize(
    "fault",
    [
        break_a_solution,
        repair_a_mistake,
        edit_an_exercise,
        solve_an_exercise,
        add_a_stray_file,
        lose_the_hints,
        forget_what_a_mistake_breaks,
        weaken_a_promise,
        leave_the_chinese_page_behind,
    ],
    ids=lambda fault: fault.__name__,
)
def test_a_broken_course_is_reported_by_file(copied, fault):
    named = fault(copied)
    done = audit(copied)
    assert done.returncode == 1, done.stdout + done.stderr
    assert named in done.stdout


def test_the_record_of_symptoms_is_written_again(copied):
    path = copied / "autograder/symptoms/05_softmax.json"
    before = path.read_text(encoding="utf-8")
    path.write_text("{}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "autograder", "record", "symptoms", "--lang", "en"],
        cwd=copied,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "05_softmax: recorded\n"
    assert path.read_text(encoding="utf-8") == before


def test_a_mistake_that_passes_on_one_salt_is_found(monkeypatch):
    softmax = catalogue()["05_softmax"]
    known = mistakes_of(softmax.module)[0]
    monkeypatch.setattr("autograder.checks.audit.mistakes_of", lambda module: [known])
    assert list(_mistakes(softmax)) == []
    monkeypatch.setattr("autograder.checks.audit._is_rejected", lambda *about: about[-1] != "audit 3")
    assert [fault.partition(": ")[2] for fault in _mistakes(softmax)] == [
        f"{known.name} is accepted on 1 of 40 salts, for example on 'audit 3'"
    ]


def test_a_right_answer_is_not_rejected():
    softmax = catalogue()["05_softmax"]
    known = next(mistake for mistake in mistakes_of(softmax.module) if mistake.part == "stable_softmax")
    right = replace(known, answer=ch05_softmax.stable_softmax)
    student = Student(Local({"stable_softmax": known.answer}))
    before = examination(softmax).examine(student, "salt", [softmax.part("stable_softmax")])[0]
    assert _is_rejected(softmax, known, before, "another salt")
    assert not _is_rejected(softmax, right, before, "another salt")
