"""Write the results: JSON, CSV, JUnit and Gradescope files for programs, and pages for people."""

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from autograder.files import write_whole
from autograder.intake.submission import Submission
from autograder.results import SubmissionReport
from autograder.verdicts import Verdict

from . import pages

SCHEMA = 1
OURS = ("results.json", "grades.csv", "junit.xml", "class.html", "journal.jsonl", "gradescope")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_all(reports: list[SubmissionReport], out: Path, lang: str, submissions: Iterable[Submission] = ()) -> None:
    """Write all files of `--out`. `submissions` are read again, to find similar ones."""
    write_json(reports, out / "results.json")
    write_csv(reports, out / "grades.csv")
    write_junit(reports, out / "junit.xml")
    for report in reports:
        write_whole(out / folder_of(report.student) / f"{report.exercise}.html", pages.feedback(report, lang))
        write_gradescope(report, out / "gradescope" / report.student / report.exercise / "results.json", lang)
    write_whole(out / "class.html", pages.class_report(reports, lang, folder_of, submissions))


def folder_of(student: str) -> str:
    """The folder of a student's feedback below `--out`. A student may have the same name as one of our files."""
    return f"{student} (student)" if student.casefold() in OURS else student


def write_json(reports: list[SubmissionReport], path: Path) -> None:
    content = {"schema": SCHEMA, "submissions": [report.public() for report in reports]}
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1))


def write_csv(reports: list[SubmissionReport], path: Path) -> None:
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(["student", "exercise", "score", "max_score", "verdict"])
    for report in reports:
        names = [harmless(report.student), harmless(report.exercise)]
        table.writerow([*names, report.score, report.max_score, str(report.verdict)])
    write_whole(path, text.getvalue())


def harmless(text: str) -> str:
    """The text of a cell, changed so that a spreadsheet does not read it as a formula."""
    return "'" + text if text.startswith(FORMULA_STARTS) else text


def write_junit(reports: list[SubmissionReport], path: Path) -> None:
    """One suite per submission, one case per part, with the counts that readers of this format expect."""
    root = ElementTree.Element("testsuites")
    totals = dict.fromkeys(("tests", "failures", "errors"), 0)
    for report in reports:
        kinds = [_kind(part.verdict) for part in report.parts]
        counts = {"tests": len(kinds), "failures": kinds.count("failure"), "errors": kinds.count("error")}
        totals = {key: totals[key] + counts[key] for key in totals}
        name = _printable(f"{report.student}/{report.exercise}")
        about = {"name": name, "time": f"{report.seconds:.3f}", "skipped": "0"}
        suite = ElementTree.SubElement(root, "testsuite", about | {key: str(count) for key, count in counts.items()})
        for part, kind in zip(report.parts, kinds, strict=True):
            case = ElementTree.SubElement(suite, "testcase", classname=_printable(report.exercise), name=part.id)
            if kind:
                message = part.mistake.name if part.mistake else str(part.verdict)
                note = ElementTree.SubElement(case, kind, {"type": str(part.verdict), "message": message})
                note.text = _printable(part.told("en"))
    for key, count in totals.items():
        root.set(key, str(count))
    write_whole(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _kind(verdict: Verdict) -> str | None:
    """JUnit distinguishes a failure (not right) from an error (could not be judged)."""
    if verdict is Verdict.PASS:
        return None
    return "failure" if verdict in (Verdict.WRONG, Verdict.MISSING) else "error"


def write_gradescope(report: SubmissionReport, path: Path, lang: str) -> None:
    tests = [
        {
            "name": part.id,
            "score": part.score,
            "max_score": part.max_score,
            "output": part.told(lang),
            "output_format": "text",
            "status": "passed" if part.verdict is Verdict.PASS else "failed",
        }
        for part in report.parts
    ]
    content = {"score": report.score, "tests": tests, "execution_time": report.seconds}
    if report.message:
        content |= {"output": report.message[lang], "output_format": "text"}
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1))


def _printable(text: str) -> str:
    """The text without control characters, which XML does not allow."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)
