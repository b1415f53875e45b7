"""Reports for programs and for people say what was found, and run nothing that a student wrote."""

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import torch
from fake_results import HOSTILE_NAMES, fake_class, hostile_class, right_report, wrong_report
from make_sample_class import FOLDER as SAMPLE
from make_sample_class import make

from autograder.catalogue import catalogue, find
from autograder.grading.run import Options, run
from autograder.language import LANGUAGES, Text
from autograder.learner.check_part import check_part
from autograder.mistakes import mistakes_of
from autograder.reports import pages, write
from autograder.reports.statistics import by_exercise, class_statistics, commonest, distribution, pass_rates
from autograder.sections import section
from autograder.verdicts import Verdict

MASKS = find("06_masks")
MISTAKES = mistakes_of(MASKS.module)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A class in which every name and message is an attack: its reports, and the folder they were written to."""
    out = tmp_path_factory.mktemp("hostile")
    write.write_all(hostile_class(), out, "en")
    return hostile_class(), out


class Tags(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self, text: str):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def html_pages(out):
    found = sorted(out.rglob("*.html"))
    assert len([path for path in found if path.is_file()]) == len(HOSTILE_NAMES) + 3
    return [path.read_text(encoding="utf-8") for path in found if path.is_file()]


def test_names_and_messages_never_become_html_tags(hostile):
    for page in html_pages(hostile[1]):
        tags = Tags(page).found
        assert [tag for tag, _ in tags].count("script") == 1
        assert not {"img", "b", "iframe", "object"} & {tag for tag, _ in tags}
        assert not [name for _, attributes in tags for name in attributes if name.startswith("on") or name == "style"]


def test_every_page_allows_only_its_own_style_and_script(hostile):
    for page in html_pages(hostile[1]):
        (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
        assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
        assert "unsafe" not in policy
        assert "http" not in policy


def test_the_csv_has_no_formulas_and_numbers_stay_numbers(hostile):
    reports, out = hostile
    with open(out / "grades.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(reports)
    for row, report in zip(rows, reports, strict=True):
        assert row["student"][0] not in "=+-@＝＋－＠\t\r"
        assert float(row["score"]) == report.score
    assert {row["student"] for row in rows} >= {"'-2+3", "'@SUM(1+1)", "'＝1＋1"}


@pytest.mark.parametrize("cell", ["=1", "+1", "-1", "@x", "\tx", "\rx", "＝1"])
def test_a_formula_is_escaped_for_spreadsheets(cell):
    assert write.harmless(cell) == "'" + cell


def test_a_student_named_like_a_report_file_cannot_replace_it(hostile):
    _, out = hostile
    assert (out / "class.html").is_file()
    assert (out / "class.html (student)" / "06_masks.html").is_file()


def test_writing_twice_gives_identical_files(hostile, tmp_path):
    reports, out = hostile
    write.write_all(reports, tmp_path, "en")
    for name in ("class.html", "grades.csv", "junit.xml", "results.json"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()


def test_junit_counts_match_its_content(hostile):
    reports, out = hostile
    root = ElementTree.parse(out / "junit.xml").getroot()
    assert (root.tag, len(root)) == ("testsuites", len(reports))
    for suite in root:
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("errors")) == len(suite.findall("testcase/error"))
        assert float(suite.get("time")) >= 0
        for note in [*suite.findall("testcase/failure"), *suite.findall("testcase/error")]:
            assert note.get("message")
            assert note.get("type")
    for key in ("tests", "failures", "errors"):
        assert int(root.get(key)) == sum(int(suite.get(key)) for suite in root)


def test_gradescope_gets_each_part_with_its_points(tmp_path):
    report = wrong_report("ada", MASKS, MISTAKES[0])
    write.write_all([report], tmp_path, "zh")
    one = json.loads((tmp_path / "gradescope" / "ada" / "06_masks" / "results.json").read_text(encoding="utf-8"))
    assert one["score"] == sum(test["score"] for test in one["tests"]) == report.score
    assert sum(test["max_score"] for test in one["tests"]) == 20
    assert {test["status"] for test in one["tests"]} == {"passed", "failed"}


def test_mistakes_are_counted_by_name_with_their_share():
    inverted, other = MISTAKES[2], MISTAKES[-1]
    reports = [wrong_report(f"s{i}", MASKS, inverted) for i in range(3)] + [wrong_report("t", MASKS, other)]
    reports.append(right_report("u", MASKS))
    first, second = commonest(reports)
    assert (first.mistake.name, first.count, first.total) == (inverted.name, 3, 5)
    assert (second.mistake.name, second.count) == (other.name, 1)
    assert first.section == section(MASKS, MASKS.part(inverted.part))


def test_a_feedback_page_names_the_mistake_and_the_section_once_each():
    inverted = next(mistake for mistake in MISTAKES if mistake.name == "inverts_the_mask")
    where = section(MASKS, MASKS.part(inverted.part))
    report = wrong_report("ada", MASKS, inverted)
    told = {"broken": Text("a promise", "一个要求"), "section": where}
    parts = [replace(part, **told) if part.mistake else part for part in report.parts]
    page = pages.feedback(replace(report, parts=tuple(parts)), "en")
    assert page.count(inverted.text.en) == 1
    assert "read: chapter 6" not in page
    assert page.count(f'href="{where.address.zh}"') == 1
    assert "off by 0.41\n  promise: a promise</pre>" in page


def test_seen_leaves_out_what_a_page_shows_separately():
    answers = {"causal_mask": lambda q_len, k_len=None: torch.ones(q_len, k_len or q_len).tril().bool()}
    part = check_part(MASKS, MASKS.part("causal_mask"), answers).report
    for lang, promise in (("en", "promise: "), ("zh", "要求：")):
        assert section(MASKS, MASKS.part("causal_mask")).words[lang] in part.told(lang)
        assert section(MASKS, MASKS.part("causal_mask")).words[lang] not in part.seen(lang)
        assert part.seen(lang).splitlines()[-1].startswith(f"  {promise}")


def test_a_right_submission_gets_why_it_works_and_what_to_try_next():
    page = pages.feedback(right_report("ada", MASKS), "en")
    assert all(text in page for text in ("Why it works", "接下来试试"))
    assert "Why it works" not in pages.feedback(wrong_report("bo", MASKS, MISTAKES[0]), "en")


def test_code_in_a_sentence_is_shown_as_code():
    with_code = next(mistake for mistake in MISTAKES if "`" in mistake.text.en)
    page = pages.class_report([wrong_report("ada", MASKS, with_code)], "en", str)
    assert "`" not in page.partition('id="mistakes"')[2].partition("<h2")[0]


def test_pass_rates_and_distribution_add_up():
    reports = fake_class(50)
    assert sum(distribution(reports)) == 50
    assert [row.distribution for row in by_exercise(reports)] == [distribution(reports)]
    for row in pass_rates(reports):
        right = sum(part.verdict is Verdict.PASS for r in reports for part in r.parts if part.id == row.part)
        assert (row.right, row.total) == (right, 50)


def test_failed_and_slow_submissions_are_listed():
    found = class_statistics(fake_class(100))
    assert {report.verdict for report in found.failed} == {Verdict.TIMEOUT}
    seconds = [report.seconds for report in found.slowest]
    assert seconds == sorted(seconds, reverse=True)


def test_every_part_has_a_section_on_both_pages_of_its_chapter():
    for exercise in catalogue().values():
        for part in exercise.parts:
            taught = section(exercise, part)
            for lang in LANGUAGES:
                assert taught.title[lang]
                assert f"/{lang}/{exercise.name}.html#{part.section}" in taught.address[lang]


def test_the_sample_class_is_what_its_script_makes(tmp_path):
    make(tmp_path)
    made = {path.relative_to(tmp_path): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.ipynb")}
    kept = {path.relative_to(SAMPLE): path.read_text(encoding="utf-8") for path in SAMPLE.rglob("*.ipynb")}
    assert len(kept) == 20
    assert made == kept, "run `python tests/make_sample_class.py` and commit what it changes"


# The verdict and the names of the mistakes that each student of the sample class must get.
SAMPLE_VERDICTS = {
    ("ada", "06_masks"): ("pass", set()),
    ("bo", "06_masks"): ("wrong", {"aligns_to_the_upper_left", "inverts_the_mask"}),
    ("chen", "06_masks"): ("wrong", {"inverts_the_mask"}),
    ("dora", "06_masks"): ("wrong", {"uses_a_finite_number", "averages_the_forbidden"}),
    ("emil", "06_masks"): ("wrong", {"counts_one_too_few", "leaves_nan_in_the_gradient"}),
    ("fang", "06_masks"): ("wrong", {"counts_one_too_few", "leaves_nan_in_the_gradient"}),
    ("gita", "06_masks"): ("error", {"aligns_to_the_upper_left"}),
    ("hugo", "06_masks"): ("missing", set()),
    ("ada", "05_softmax"): ("pass", set()),
    ("bo", "05_softmax"): ("wrong", {"forgets_the_max"}),
    ("chen", "05_softmax"): ("wrong", {"gives_nan_for_a_row_of_minus_infinity"}),
    ("dora", "05_softmax"): ("timeout", set()),
    ("fang", "05_softmax"): ("pass", set()),
    ("gita", "05_softmax"): ("wrong", {"ignores_the_axis", "multiplies_by_the_temperature"}),
    ("ada", "03_scaled_dot_product"): ("pass", set()),
    ("bo", "03_scaled_dot_product"): ("wrong", {"forgets_the_scale"}),
    ("emil", "03_scaled_dot_product"): ("wrong", {"divides_by_d_k"}),
    ("fang", "03_scaled_dot_product"): ("wrong", {"normalises_over_the_queries"}),
    ("gita", "03_scaled_dot_product"): ("policy", set()),
    ("hugo", "03_scaled_dot_product"): ("pass", set()),
}


def test_the_sample_class_gets_its_expected_marks_and_the_copy_is_found(tmp_path):
    db = f"sqlite:///{tmp_path}/gradebook.db"
    reports = run(Options(SAMPLE, tmp_path / "out", jobs=1, db=db, autograded=tmp_path / "autograded"))
    found = {
        (report.student, report.exercise): (
            str(report.verdict),
            {part.mistake.name for part in report.parts if part.mistake},
        )
        for report in reports
    }
    assert found == SAMPLE_VERDICTS
    page = (tmp_path / "out" / "class.html").read_text(encoding="utf-8")
    likeness = page.partition('id="alike"')[2].partition('id="all"')[0]
    assert re.findall(r'href="(\w+)/(\w+)\.html"', likeness) == [("emil", "06_masks"), ("fang", "06_masks")]
