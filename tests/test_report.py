"""What is written for programs and people says what was found, and carries nothing a student smuggled in."""

import csv
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import torch
from invented import HOSTILE_NAMES, a_class, a_part, a_result, hostile_class, wrong_result
from make_sample_class import FOLDER as SAMPLE
from make_sample_class import make

from autograder.catalogue import catalogue, find
from autograder.exam.part_report import seen
from autograder.grading.run import Options, run
from autograder.language import LANGUAGES
from autograder.learner.check_part import learn
from autograder.mistakes import mistakes_of
from autograder.reports import pages as webpage
from autograder.reports import write as report
from autograder.reports.statistics import by_exercise, commonest, distribution, overview, pass_rates
from autograder.sections import section

MASKS = find("06_masks")
MISTAKES = mistakes_of(MASKS.module)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A class in which every name and message tries something: its results, and where they were written."""
    out = tmp_path_factory.mktemp("hostile")
    report.write_all(hostile_class(), out, "en")
    return hostile_class(), out


class Tags(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self, text: str):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def pages(out):
    found = sorted(out.rglob("*.html"))
    assert len([path for path in found if path.is_file()]) == len(HOSTILE_NAMES) + 3
    return [path.read_text(encoding="utf-8") for path in found if path.is_file()]


def test_no_name_or_message_becomes_a_tag_of_a_page(hostile):
    for page in pages(hostile[1]):
        tags = Tags(page).found
        assert [tag for tag, _ in tags].count("script") == 1
        assert not {"img", "b", "iframe", "object"} & {tag for tag, _ in tags}
        assert not [name for _, attributes in tags for name in attributes if name.startswith("on") or name == "style"]


def test_every_page_allows_only_its_own_style_and_script(hostile):
    for page in pages(hostile[1]):
        (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
        assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
        assert "unsafe" not in policy
        assert "http" not in policy


def test_no_cell_of_the_table_is_a_formula_and_numbers_stay_numbers(hostile):
    results, out = hostile
    with open(out / "grades.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(results)
    for row, result in zip(rows, results, strict=True):
        assert row["student"][0] not in "=+-@＝＋－＠\t\r"
        assert float(row["score"]) == result["score"]
    assert {row["student"] for row in rows} >= {"'-2+3", "'@SUM(1+1)", "'＝1＋1"}


@pytest.mark.parametrize("cell", ["=1", "+1", "-1", "@x", "\tx", "\rx", "＝1"])
def test_what_a_spreadsheet_would_compute_is_made_text(cell):
    assert report.harmless(cell) == "'" + cell


def test_a_student_called_like_a_report_cannot_replace_it(hostile):
    _, out = hostile
    assert (out / "class.html").is_file()
    assert (out / "class.html (student)" / "06_masks.html").is_file()


def test_the_same_outputs_are_written_twice_byte_for_byte(hostile, tmp_path):
    results, out = hostile
    report.write_all(results, tmp_path, "en")
    for name in ("class.html", "grades.csv", "junit.xml", "results.json"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()


def test_junit_counts_what_it_holds(hostile):
    results, out = hostile
    root = ElementTree.parse(out / "junit.xml").getroot()
    assert (root.tag, len(root)) == ("testsuites", len(results))
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
    result = wrong_result("ada", MASKS, MISTAKES[0])
    report.write_all([result], tmp_path, "zh")
    one = json.loads((tmp_path / "gradescope" / "ada" / "06_masks" / "results.json").read_text(encoding="utf-8"))
    assert one["score"] == sum(test["score"] for test in one["tests"]) == result["score"]
    assert sum(test["max_score"] for test in one["tests"]) == 20
    assert {test["status"] for test in one["tests"]} == {"passed", "failed"}


def test_mistakes_are_counted_by_name_with_their_share():
    inverted, other = MISTAKES[2], MISTAKES[-1]
    results = [wrong_result(f"s{i}", MASKS, inverted) for i in range(3)] + [wrong_result("t", MASKS, other)]
    results.append(a_result("u", MASKS, [a_part(part) for part in MASKS.parts], "pass"))
    first, second = commonest(results)
    assert (first["name"], first["count"], first["total"]) == (inverted.name, 3, 5)
    assert (second["name"], second["count"]) == (other.name, 1)
    assert first["section"] == section(MASKS, MASKS.part(inverted.part))


def test_a_feedback_page_names_the_mistake_and_the_section_once_each():
    inverted = next(mistake for mistake in MISTAKES if mistake.name == "inverts_the_mask")
    text = f"off by 0.41\n  promise: a promise\n  likely mistake: {inverted.text['en']}\n  read: chapter 6, «Masks»"
    page = webpage.feedback(wrong_result("ada", MASKS, inverted, text), "en")
    assert page.count(inverted.text["en"]) == 1
    assert "read: chapter 6" not in page
    assert f'href="{section(MASKS, MASKS.part(inverted.part))["address"]["zh"]}"' in page
    assert "  promise: a promise</pre>" in page


def test_what_findings_adds_to_a_message_is_what_a_page_shows_apart():
    answers = {"causal_mask": lambda q_len, k_len=None: torch.ones(q_len, k_len or q_len).tril().bool()}
    part = learn(MASKS, MASKS.part("causal_mask"), answers)
    for lang, promise in (("en", "promise: "), ("zh", "要求：")):
        assert section(MASKS, MASKS.part("causal_mask"))["words"][lang] in part["message"][lang]
        assert seen(part["message"][lang]).splitlines()[-1].startswith(f"  {promise}")


def test_whoever_is_right_reads_why_it_works_and_what_to_try_next():
    right = a_result("ada", MASKS, [a_part(part) for part in MASKS.parts], "pass")
    assert all(text in webpage.feedback(right, "en") for text in ("Why it works", "接下来试试"))
    assert "Why it works" not in webpage.feedback(wrong_result("bo", MASKS, MISTAKES[0]), "en")


def test_code_in_a_sentence_is_shown_as_code():
    ignored = next(mistake for mistake in MISTAKES if "`" in mistake.text["en"])
    page = webpage.class_report([wrong_result("ada", MASKS, ignored)], "en", str)
    assert "`" not in page.partition('id="mistakes"')[2].partition("<h2")[0]


def test_pass_rates_and_distribution_add_up():
    results = a_class(50)
    assert sum(distribution(results)) == 50
    assert [row["distribution"] for row in by_exercise(results)] == [distribution(results)]
    for row in pass_rates(results):
        right = sum(p["verdict"] == "pass" for r in results for p in r["parts"] if p["id"] == row["part"])
        assert (row["right"], row["total"]) == (right, 50)


def test_what_failed_and_what_was_slow_is_listed():
    seen = overview(a_class(100))
    assert {result["verdict"] for result in seen["failed"]} == {"timeout"}
    seconds = [result["seconds"] for result in seen["slowest"]]
    assert seconds == sorted(seconds, reverse=True)


def test_every_part_has_a_section_on_both_pages_of_its_chapter():
    for exercise in catalogue().values():
        for part in exercise.parts:
            taught = section(exercise, part)
            for lang in LANGUAGES:
                assert taught["title"][lang]
                assert f"/{lang}/{exercise.name}.html#{part.section}" in taught["address"][lang]


def test_the_sample_class_is_what_its_script_makes(tmp_path):
    make(tmp_path)
    made = {path.relative_to(tmp_path): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.ipynb")}
    kept = {path.relative_to(SAMPLE): path.read_text(encoding="utf-8") for path in SAMPLE.rglob("*.ipynb")}
    assert len(kept) == 20
    assert made == kept, "run «python tests/make_sample_class.py» and commit what it changes"


# What each student of the sample class must be told: the verdict, and the mistakes by name.
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


def test_the_sample_class_gets_the_marks_it_was_made_for_and_the_copy_is_seen(tmp_path):
    db = f"sqlite:///{tmp_path}/gradebook.db"
    results = run(Options(SAMPLE, tmp_path / "out", jobs=1, db=db, autograded=tmp_path / "autograded"))
    told = {
        (r["student"], r["exercise"]): (r["verdict"], {part["mistake"] for part in r["parts"]} - {None})
        for r in results
    }
    assert told == SAMPLE_VERDICTS
    page = (tmp_path / "out" / "class.html").read_text(encoding="utf-8")
    likeness = page.partition('id="alike"')[2].partition('id="all"')[0]
    assert re.findall(r'href="(\w+)/(\w+)\.html"', likeness) == [("emil", "06_masks"), ("fang", "06_masks")]
