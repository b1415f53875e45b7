"""Write what was found: JSON, CSV, JUnit, Gradescope, and pages for people."""

import csv
import json
import os
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, select_autoescape

from .catalogue import catalogue
from .language import VERDICTS
from .mistakes import mistakes_of

SCHEMA = 1
MOST_MISTAKES = 20  # more would not be read


def write_all(results: list[dict], out: Path, lang: str) -> None:
    """Everything `--out` promises."""
    _write(out / "results.json", json.dumps({"schema": SCHEMA, "submissions": results}, ensure_ascii=False, indent=1))
    write_csv(results, out / "grades.csv")
    write_junit(results, out / "junit.xml")
    for result in results:
        write_feedback(result, out, lang)
        write_gradescope(result, out / "gradescope", lang)
    write_class(results, out / "class.html", lang)


def write_csv(results: list[dict], path: Path) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["student", "exercise", "score", "max_score", "verdict"])
        for result in results:
            rows.writerow([harmless(str(result[key])) for key in ("student", "exercise")]
                          + [result[key] for key in ("score", "max_score", "verdict")])  # fmt: skip


def harmless(text: str) -> str:
    """A cell that a spreadsheet will not take for a formula."""
    return "'" + text if text[:1] in "=+-@\t\r" else text


def write_junit(results: list[dict], path: Path) -> None:
    root = ElementTree.Element("testsuites")
    for result in results:
        suite = ElementTree.SubElement(root, "testsuite", name=_printable(f"{result['student']}/{result['exercise']}"))
        for part in result["parts"]:
            case = ElementTree.SubElement(suite, "testcase", classname=result["exercise"], name=part["id"])
            if part["verdict"] != "pass":
                kind = "failure" if part["verdict"] in ("wrong", "missing") else "error"
                note = ElementTree.SubElement(case, kind, message=part["mistake"] or part["verdict"])
                note.text = _printable(part["message"]["en"])
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def write_gradescope(result: dict, folder: Path, lang: str) -> None:
    tests = [
        {
            "name": part["id"],
            "score": part["score"],
            "max_score": part["max_score"],
            "output": part["message"][lang],
            "status": "passed" if part["verdict"] == "pass" else "failed",
        }
        for part in result["parts"]
    ]
    content = {"score": result["score"], "tests": tests, "execution_time": result["seconds"]}
    _write(
        folder / result["student"] / result["exercise"] / "results.json",
        json.dumps(content, ensure_ascii=False, indent=1),
    )


def write_feedback(result: dict, out: Path, lang: str) -> None:
    page = (
        _templates()
        .get_template("feedback.html")
        .render(result=result, lang=lang, verdicts=VERDICTS, title=title(result["exercise"]))
    )
    _write(out / result["student"] / f"{result['exercise']}.html", page)


def write_class(results: list[dict], path: Path, lang: str) -> None:
    page = (
        _templates()
        .get_template("class.html")
        .render(results=results, lang=lang, verdicts=VERDICTS, mistakes=commonest(results), parts=pass_rates(results))
    )
    _write(path, page)


def commonest(results: list[dict]) -> list[dict]:
    """The mistakes of the class by name, most frequent first, with the share of that exercise's submissions."""
    counts = Counter((r["exercise"], p["mistake"]) for r in results for p in r["parts"] if p["mistake"])
    handed_in = Counter(r["exercise"] for r in results)
    texts = {(e.name, m.name): m.text for e in catalogue().values() for m in mistakes_of(e.module)}
    return [
        {"exercise": exercise, "name": name, "count": count, "share": count / handed_in[exercise],
         "text": texts[exercise, name]}
        for (exercise, name), count in counts.most_common(MOST_MISTAKES)
    ]  # fmt: skip


def pass_rates(results: list[dict]) -> list[dict]:
    """How many got each part right."""
    totals, right = Counter(), Counter()
    for result in results:
        for part in result["parts"]:
            totals[result["exercise"], part["id"]] += 1
            right[result["exercise"], part["id"]] += part["verdict"] == "pass"
    return [{"exercise": e, "part": p, "right": right[e, p], "total": n} for (e, p), n in sorted(totals.items())]


def title(exercise: str) -> dict[str, str]:
    known = catalogue().get(exercise)
    return known.title if known else {"en": exercise, "zh": exercise}


def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("autograder"),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _printable(text: str) -> str:
    """XML has no way to say control characters."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


def _write(path: Path, text: str) -> None:
    """Write a whole file or nothing: a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    draft.write_text(text, encoding="utf-8", errors="replace")
    os.replace(draft, path)
