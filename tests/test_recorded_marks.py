"""The sample class gets the marks that are on record: whatever is rebuilt, nobody's mark changes unnoticed.

When a suite changes on purpose, `python -m tests.test_recorded_marks` writes the record again. Read its difference.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
RECORD = HERE / "recorded" / "sample_class.json"
SALT = "rooms"


def marks_of_the_sample_class(folder: Path) -> dict[str, dict]:
    """By student and exercise: score, verdict, and for each part score, verdict, mistake and which promises were kept."""
    command = [sys.executable, "-m", "autograder", "grade", str(HERE / "sample_class"), "--out", "out"]
    subprocess.run(command, cwd=folder, env=os.environ | {"AUTOGRADER_SALT": SALT}, check=True, capture_output=True)
    found = json.loads((folder / "out" / "results.json").read_text(encoding="utf-8"))["submissions"]
    return {f"{submission['student']}/{submission['exercise']}": _marks(submission) for submission in found}


def _marks(submission: dict) -> dict:
    parts = {
        part["id"]: [
            part["score"],
            part["verdict"],
            part["mistake"],
            "".join("✗✓"[p["kept"]] for p in part["promises"]),
        ]
        for part in submission["parts"]
    }
    return {key: submission[key] for key in ("score", "max_score", "verdict")} | {"parts": parts}


def test_the_sample_class_gets_the_recorded_marks(tmp_path):
    assert marks_of_the_sample_class(tmp_path) == json.loads(RECORD.read_text(encoding="utf-8"))


def record() -> None:
    with tempfile.TemporaryDirectory() as folder:
        marks = marks_of_the_sample_class(Path(folder))
    lines = [f"{json.dumps(who)}: {json.dumps(mark, ensure_ascii=False)}" for who, mark in marks.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    record()
