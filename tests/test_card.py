"""What a learner sees: the smallest failing input, both answers as heat maps, their own traceback, what to do next."""

import json
import re

import pytest
import torch

from autograder import check, hint
from autograder.catalogue import catalogue, find
from autograder.checks.samples import hand_in, with_mistake
from autograder.checks.translations import BOOK
from autograder.exam.evidence import Evidence
from autograder.exam.proxy import Student
from autograder.grading.grade import Conditions, grade_file
from autograder.hints import afterwards
from autograder.language import LANGUAGES
from autograder.learner import progress
from autograder.learner.check_part import check_part
from autograder.learner.shrink import smallest
from autograder.learner.traceback import MOST_LINES
from autograder.learner.transport import NotebookTransport
from autograder.mistakes import mistakes_of
from autograder.reference import ch06_masks
from autograder.reports import heatmap
from autograder.results import Failure
from autograder.sections import SITE, section
from autograder.verdicts import Verdict

MASKS = find("06_masks")
REFERENCE = {part.name: getattr(ch06_masks, part.name) for part in MASKS.parts}


def unscaled(q, k, v, mask):
    return ch06_masks.masked_attention(q * q.shape[-1] ** 0.5, k, v, mask)


def upper_left(q_len, k_len=None):
    return torch.ones(q_len, k_len or q_len).tril().bool()


def failure_of(part: str, answer) -> Failure:
    return check_part(MASKS, MASKS.part(part), REFERENCE | {part: answer}).failure


def test_the_failing_input_is_shrunk_and_still_fails():
    shown = failure_of("masked_attention", unscaled)
    assert re.search(r"mask=\[\[\[\[1, 1\], \[0, 1\]\]\]\]", shown.inputs)
    assert len(shown.yours.rows) == 2
    r, c = shown.yours.worst
    assert shown.yours.rows[r][c] != shown.expected.rows[r][c]


def test_integer_inputs_are_shrunk_too():
    assert failure_of("causal_mask", upper_left).inputs == "causal_mask(q_len=2, k_len=3)"


def test_a_smaller_input_must_fail_in_the_same_way():
    """An answer that is off by 1 in wide rows, and only by rounding in narrow ones, is shown on a wide row."""

    def masked_softmax(x):
        return x + (1.0 if x.shape[-1] > 3 else 1e-9)

    def identity(x):
        return x + 0.0

    identity.__name__ = "masked_softmax"
    wide = torch.arange(10.0).reshape(2, 5)
    seen = Evidence(masked_softmax(wide), wide, (0, 0), identity, (wide,), {})
    part = find("05_softmax").part("masked_softmax")
    found = smallest(Student(NotebookTransport({"masked_softmax": masked_softmax}, part)), part, seen)
    assert found.args[0].shape == (2, 5)


def test_both_heat_maps_share_one_scale_and_mark_the_worst_element():
    shown = check("causal_mask", lang="en", namespace={"causal_mask": upper_left})._repr_html_()
    assert shown.count("<table") == 2
    assert shown.count('aria-label="0, the worst element"') == 1
    assert shown.count('aria-label="1, the worst element"') == 1


def test_a_large_tensor_is_cut_to_a_window_around_the_worst_element():
    shown = heatmap.excerpt(torch.arange(3 * 40 * 50.0).reshape(3, 40, 50), (2, 30, 49))
    assert shown.where == "[2, 26:34, 42:50]"
    assert shown.rows[shown.worst[0]][shown.worst[1]] == 2 * 2000 + 30 * 50 + 49
    assert (len(shown.rows), len(shown.rows[0])) == (8, 8)


@pytest.mark.parametrize(
    ("tensor", "worst"), [(torch.tensor(2.0), ()), (torch.tensor([1.0, 2.0]), (1,)), (torch.ones(2, 3), (1, 2))]
)
def test_small_tensors_of_any_shape_are_shown_whole(tensor, worst):
    shown = heatmap.excerpt(tensor, worst)
    assert shown.where == ""
    assert sum(map(len, shown.rows)) == tensor.numel()


def test_infinities_and_nan_are_shown_and_do_not_set_the_colour_scale():
    shown = heatmap.excerpt(torch.tensor([[float("inf"), float("nan"), -float("inf"), 0.5]]), (0, 0))
    assert heatmap.scale(shown) == 0.5
    table = heatmap.html("", shown, heatmap.scale(shown), "")
    assert all(word in table for word in ("∞", "NaN", "−∞", "0.50"))


def test_a_traceback_shows_only_the_learners_cell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    source = "import torch\ndef causal_mask(q_len, k_len=None):\n    table = torch.ones(q_len)\n    return table @ torch.ones(7, 7)\n"
    shell.run_cell(source)
    shown = check_part(MASKS, MASKS.part("causal_mask"), shell.user_ns).failure.traceback
    assert re.search(r"----> +4 +return table @ torch.ones\(7, 7\)", shown)
    assert "table = torch.ones(q_len)" in shown
    assert shown.splitlines()[-1].startswith("RuntimeError: ")
    assert "autograder" not in shown


def test_the_traceback_of_endless_recursion_is_short():
    source = "def causal_mask(q_len, k_len=None):\n    return causal_mask(q_len, k_len)\n"
    namespace = {}
    exec(source, namespace)
    shown = check_part(MASKS, MASKS.part("causal_mask"), namespace).failure.traceback.splitlines()
    assert len(shown) == MOST_LINES + 1
    assert "…" in shown
    assert shown[-1].startswith("RecursionError: ")


def test_an_error_outside_the_learners_code_has_no_traceback():
    shown = failure_of("padding_mask", lambda lengths: lengths)
    assert shown.traceback == ""
    assert "raises TypeError" in shown.message.en


def test_an_interrupt_ends_the_whole_check_and_shows_where():
    calls = []

    def looping(q_len, k_len=None):
        calls.append(q_len)
        raise KeyboardInterrupt

    lesson = check_part(MASKS, MASKS.part("causal_mask"), {"causal_mask": looping})
    assert len(calls) == 1
    assert lesson.report.verdict is Verdict.TIMEOUT
    assert "you stopped it" in lesson.failure.message.en
    assert lesson.failure.traceback.splitlines()[-1] == "KeyboardInterrupt"


def test_an_unwritten_answer_says_where_to_begin():
    undefined = check("causal_mask", lang="en", namespace={}).text
    assert "Run the cell that defines it" in undefined
    assert "✗" not in undefined
    shown = check("causal_mask", lang="zh", namespace={"causal_mask": unwritten})
    assert "还没有写" in shown.text
    for way_on in ("masks-alignment", "hint(&quot;causal_mask&quot;)"):
        assert way_on in shown.html


def unwritten(q_len, k_len=None):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("x", "shown"), [(10001.04, "10001.0"), (-9999.26, "−9999.3"), (0.5, "0.50"), (2.5e7, "2.5e+07")]
)
def test_numbers_keep_enough_digits(x, shown):
    assert heatmap.number(x) == shown


def test_a_failure_links_to_the_section_that_teaches_the_part():
    shown = check("causal_mask", lang="zh", namespace={"causal_mask": upper_left})
    assert f"第 6 章《{section(MASKS, MASKS.part('causal_mask')).title.zh}》" in shown.text
    assert f'href="{SITE}zh/06_masks.html#masks-alignment"' in shown.html


def test_every_part_has_a_section_in_both_books(root):
    for exercise in catalogue().values():
        for part in exercise.parts:
            assert all(section(exercise, part).title[lang] for lang in LANGUAGES)
    assert f"baseurl: {SITE}" in (root / "_config.yml").read_text(encoding="utf-8")
    assert (root / BOOK).is_dir()


def test_styles_are_inline_and_text_keeps_the_colour_of_the_page():
    """Text has its own colour only where the background has one too: on badges and marks."""
    shown = check("causal_mask", lang="en", namespace={"causal_mask": upper_left}).html
    assert "<style" not in shown
    assert "class=" not in shown
    for style in re.findall(r'style="([^"]*)"', shown):
        colour = re.search(r"(?:^|;)color:([^;]*)", style)
        assert colour is None or colour[1] == "inherit" or "background:#" in style


def test_a_right_part_names_the_open_ones_and_the_last_one_explains_why_it_works():
    first = check("causal_mask", lang="en", namespace=REFERENCE).text
    assert "Still open here: `padding_mask`" in first
    last = [check(part.name, lang="en", namespace=REFERENCE).text for part in MASKS.parts][-1]
    assert afterwards(MASKS).why.en in last
    assert afterwards(MASKS).next.en in last


def test_a_hint_can_be_shown_again_and_an_unknown_step_is_refused():
    first = hint("causal_mask", lang="en").text
    hint("causal_mask", lang="en")
    assert hint("causal_mask", step=1, lang="en").text == first
    with pytest.raises(ValueError, match="1 to 4"):
        hint("causal_mask", step=9)


def test_hints_continue_in_the_next_session():
    hint("causal_mask", lang="en")
    assert progress.load()["06_masks"]["causal_mask"]["hints"] == 1
    assert "hint 2 of 4" in hint("causal_mask", lang="en").text


def test_graded_reports_never_show_hidden_inputs(tmp_path):
    wrong = next(mistake for mistake in mistakes_of(MASKS.module) if mistake.part == "masked_attention")
    path = hand_in(tmp_path, "somebody", MASKS, with_mistake(MASKS, wrong))
    report = grade_file("somebody", MASKS.name, path, Conditions("a salt", may_lack=None)).report
    part = next(part for part in report.parts if part.id == "masked_attention")
    assert set(part.public()) == {"id", "score", "max_score", "verdict", "mistake", "message", "promises"}
    assert "mask=" not in json.dumps(report.data())
