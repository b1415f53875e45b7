"""Write what was found: JSON, CSV, JUnit and Gradescope for programs, and pages for people."""

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from . import webpage
from .files import write_whole
from .submission import Submission

SCHEMA = 1
OURS = ("results.json", "grades.csv", "junit.xml", "class.html", "journal.jsonl", "gradescope")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_all(results: list[dict], out: Path, lang: str, submissions: Iterable[Submission] = ()) -> None:
    """Everything `--out` promises. `submissions` are read once more, to see which are alike."""
    write_whole(
        out / "results.json", json.dumps({"schema": SCHEMA, "submissions": results}, ensure_ascii=False, indent=1)
    )
    write_csv(results, out / "grades.csv")
    write_junit(results, out / "junit.xml")
    for result in results:
        folder = folder_of(result["student"])
        write_whole(out / folder / f"{result['exercise']}.html", webpage.feedback(result, lang))
        write_gradescope(result, out / "gradescope" / result["student"] / result["exercise"] / "results.json", lang)
    write_whole(out / "class.html", webpage.class_report(results, lang, folder_of, submissions))


def folder_of(student: str) -> str:
    """The folder of a student's feedback below `--out`. Nobody's name may take the place of a report."""
    return f"{student} (student)" if student.casefold() in OURS else student


def write_csv(results: list[dict], path: Path) -> None:
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(["student", "exercise", "score", "max_score", "verdict"])
    for result in results:
        rows.writerow([harmless(str(result[key])) for key in ("student", "exercise")]
                      + [result[key] for key in ("score", "max_score", "verdict")])  # fmt: skip
    write_whole(path, text.getvalue())


def harmless(text: str) -> str:
    """A cell that a spreadsheet will not take for a formula."""
    return "'" + text if text.startswith(FORMULA_STARTS) else text


def write_junit(results: list[dict], path: Path) -> None:
    """One suite a submission, one case a part, with the counts that readers of this format expect."""
    root = ElementTree.Element("testsuites")
    totals = dict.fromkeys(("tests", "failures", "errors"), 0)
    for result in results:
        kinds = [_kind(part["verdict"]) for part in result["parts"]]
        counts = {"tests": len(kinds), "failures": kinds.count("failure"), "errors": kinds.count("error")}
        totals = {key: totals[key] + counts[key] for key in totals}
        name = _printable(f"{result['student']}/{result['exercise']}")
        about = {"name": name, "time": f"{result['seconds']:.3f}", "skipped": "0"}
        suite = ElementTree.SubElement(root, "testsuite", about | {key: str(count) for key, count in counts.items()})
        for part, kind in zip(result["parts"], kinds, strict=True):
            case = ElementTree.SubElement(suite, "testcase", classname=_printable(result["exercise"]), name=part["id"])
            if kind:
                why = {"type": part["verdict"], "message": part["mistake"] or part["verdict"]}
                note = ElementTree.SubElement(case, kind, why)
                note.text = _printable(part["message"]["en"])
    for key, count in totals.items():
        root.set(key, str(count))
    write_whole(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _kind(verdict: str) -> str | None:
    """JUnit tells an answer that is not right from one that could not be judged."""
    return None if verdict == "pass" else "failure" if verdict in ("wrong", "missing") else "error"


def write_gradescope(result: dict, path: Path, lang: str) -> None:
    tests = [
        {
            "name": part["id"],
            "score": part["score"],
            "max_score": part["max_score"],
            "output": part["message"][lang],
            "output_format": "text",
            "status": "passed" if part["verdict"] == "pass" else "failed",
        }
        for part in result["parts"]
    ]
    content = {"score": result["score"], "tests": tests, "execution_time": result["seconds"]}
    if "message" in result:
        content |= {"output": result["message"][lang], "output_format": "text"}
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1))


def _printable(text: str) -> str:
    """XML has no way to say control characters."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)
