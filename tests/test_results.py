"""Results are records: they survive JSON, have a fixed public form, and show what a student wrote in full."""

import json
import sys
from dataclasses import replace
from html import escape

import pytest
from fake_results import fake_class, hostile_class, wrong_report

from autograder.catalogue import find
from autograder.checks.samples import hand_in, solution, with_answer
from autograder.grading.grade import Conditions, grade_file
from autograder.language import Text
from autograder.mistakes import mistakes_of
from autograder.reports import card, write
from autograder.results import SubmissionReport
from autograder.sections import section
from autograder.verdicts import Verdict

MASKS = find("06_masks")
SUBMISSION = {"student", "exercise", "score", "max_score", "verdict", "seconds", "parts"}
PART = {"id", "score", "max_score", "verdict", "mistake", "message", "promises"}


def full_report() -> SubmissionReport:
    """A report in which every field of the wrong part is set."""
    report = wrong_report("图灵", MASKS, mistakes_of(MASKS.module)[0])
    told = {"broken": Text("a promise", "一个要求"), "section": section(MASKS, MASKS.parts[0])}
    return replace(report, parts=tuple(replace(part, **told) if part.mistake else part for part in report.parts))


@pytest.mark.parametrize("report", [full_report(), *fake_class(5), *hostile_class()], ids=lambda report: report.student)
def test_a_report_survives_json(report):
    again = SubmissionReport.from_data(json.loads(json.dumps(report.data())))
    assert again == report
    assert type(again.verdict) is Verdict
    assert all(type(part.verdict) is Verdict for part in again.parts)


def test_the_public_form_has_exactly_the_keys_of_schema_1():
    found = full_report().public()
    assert set(found) == SUBMISSION
    for part in found["parts"]:
        assert set(part) == PART
        assert set(part["message"]) == {"en", "zh"}
        assert all(set(promise) == {"kept", "en", "zh"} for promise in part["promises"])
    assert found["parts"][0]["mistake"] == mistakes_of(MASKS.module)[0].name
    assert found["parts"][1]["mistake"] is None
    assert json.loads(json.dumps(found)) == found


def test_a_submission_that_was_not_graded_says_why_in_its_public_form():
    refused = replace(full_report(), message=Text("damaged", "已损坏"))
    assert set(refused.public()) == SUBMISSION | {"message"}
    assert refused.public()["message"] == {"en": "damaged", "zh": "已损坏"}


def test_everything_is_told_in_one_text_and_in_order():
    report = full_report()
    part = next(part for part in report.parts if part.mistake)
    assert part.told("en").split("\n") == [
        "off by 0.41",
        "  promise: a promise",
        f"  likely mistake: {part.mistake.text.en}",
        f"  read: {part.section.words.en}",
    ]
    assert part.told("zh").split("\n")[1:] == [
        "  要求：一个要求",
        f"  很可能是这个错误：{part.mistake.text.zh}",
        f"  阅读：{part.section.words.zh}",
    ]


# What an error may say: lines that look like ours. Nothing after them may be lost.
LOOKS_LIKE_OURS = "first\n  read: nothing\n  likely mistake: x\n  promise: y\n  阅读：无\n  很可能是这个错误：无\nlast"
RAISES = f"def causal_mask(q_len, k_len=None):\n    raise RuntimeError({LOOKS_LIKE_OURS!r})"


@pytest.fixture(scope="module")
def misleading(tmp_path_factory):
    """The report on a submission whose error text looks like lines of a report, and the folder of its reports."""
    folder = tmp_path_factory.mktemp("misleading")
    path = hand_in(folder / "in", "ada", MASKS, with_answer(solution(MASKS), "causal_mask", RAISES))
    report = grade_file("ada", MASKS.name, path, Conditions("salt", may_lack=None)).report
    write.write_all([report], folder / "out", "en")
    return report, folder / "out"


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="grading needs Linux")


@linux
def test_an_error_text_is_shown_whole_on_the_feedback_page(misleading):
    page = (misleading[1] / "ada" / "06_masks.html").read_text(encoding="utf-8")
    assert f"causal_mask: raises RuntimeError: {escape(LOOKS_LIKE_OURS)}\n  line 2, in causal_mask:" in page
    assert f"causal_mask：抛出 RuntimeError：{escape(LOOKS_LIKE_OURS)}\n  第 2 行，causal_mask 中：" in page
    assert page.count(f'href="{section(MASKS, MASKS.parts[0]).address.en}"') == 1


@linux
def test_an_error_text_is_written_whole_to_every_file(misleading):
    out = misleading[1]
    written = json.loads((out / "results.json").read_text(encoding="utf-8"))["submissions"][0]["parts"][0]
    gradescope = json.loads((out / "gradescope/ada/06_masks/results.json").read_text(encoding="utf-8"))["tests"][0]
    words = section(MASKS, MASKS.parts[0]).words
    for text in (written["message"]["en"], gradescope["output"], (out / "junit.xml").read_text(encoding="utf-8")):
        assert f"raises RuntimeError: {LOOKS_LIKE_OURS}\n  line 2, in causal_mask:" in text
        assert f"\n  read: {words.en}" in text
    assert f"抛出 RuntimeError：{LOOKS_LIKE_OURS}\n  第 2 行" in written["message"]["zh"]
    assert written["message"]["zh"].endswith(f"\n  阅读：{words.zh}")
    assert (written["verdict"], written["mistake"]) == ("error", None)


@linux
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_error_text_is_shown_whole_on_the_card(misleading, lang):
    part = misleading[0].parts[0]
    assert LOOKS_LIKE_OURS in card.text(part, lang)
    assert escape(LOOKS_LIKE_OURS) in card.html(part, lang)
    assert part.told(lang).endswith(section(MASKS, MASKS.parts[0]).words[lang])
