"""What a learner sees: the smallest failing input, both answers as heat maps, the own traceback, a way on."""

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
from autograder.grading.grade import grade
from autograder.hints import afterwards
from autograder.learner import progress
from autograder.learner.check_part import MOST_LINES, learn
from autograder.learner.shrink import smallest
from autograder.learner.traceback import OwnNotebook
from autograder.mistakes import mistakes_of
from autograder.reference import ch06_masks
from autograder.reports.heatmap import html as heat_map
from autograder.reports.heatmap import number, scale, view
from autograder.sections import SITE, section

MASKS = find("06_masks")
REFERENCE = {part.name: getattr(ch06_masks, part.name) for part in MASKS.parts}


def unscaled(q, k, v, mask):
    return ch06_masks.masked_attention(q * q.shape[-1] ** 0.5, k, v, mask)


def upper_left(q_len, k_len=None):
    return torch.ones(q_len, k_len or q_len).tril().bool()


def lesson(part: str, answer) -> dict:
    return learn(MASKS, MASKS.part(part), REFERENCE | {part: answer})["lesson"]


def test_the_failing_input_is_made_small_and_still_fails():
    shown = lesson("masked_attention", unscaled)
    assert re.search(r"mask=\[\[\[\[1, 1\], \[0, 1\]\]\]\]", shown["inputs"])
    assert len(shown["yours"].rows) == 2
    r, c = shown["yours"].worst
    assert shown["yours"].rows[r][c] != shown["expected"].rows[r][c]


def test_whole_numbers_are_made_small_too():
    assert lesson("causal_mask", upper_left)["inputs"] == "causal_mask(q_len=2, k_len=3)"


def test_a_smaller_input_must_be_wrong_in_the_same_way():
    """An answer that is off by 1 in wide rows only and by rounding elsewhere is not shown on a narrow one."""

    def masked_softmax(x):
        return x + (1.0 if x.shape[-1] > 3 else 1e-9)

    def identity(x):
        return x + 0.0

    identity.__name__ = "masked_softmax"
    wide = torch.arange(10.0).reshape(2, 5)
    seen = Evidence(masked_softmax(wide), wide, (0, 0), identity, (wide,), {})
    part = find("05_softmax").part("masked_softmax")
    found = smallest(Student(OwnNotebook({"masked_softmax": masked_softmax})), part, seen)
    assert found.args[0].shape == (2, 5)


def test_both_heat_maps_share_one_scale_and_mark_the_worst_element():
    shown = check("causal_mask", lang="en", namespace={"causal_mask": upper_left})._repr_html_()
    assert shown.count("<table") == 2
    assert shown.count('aria-label="0, the worst element"') == 1
    assert shown.count('aria-label="1, the worst element"') == 1


def test_a_large_tensor_is_cut_to_a_window_around_the_worst_element():
    shown = view(torch.arange(3 * 40 * 50.0).reshape(3, 40, 50), (2, 30, 49))
    assert shown.where == "[2, 26:34, 42:50]"
    assert shown.rows[shown.worst[0]][shown.worst[1]] == 2 * 2000 + 30 * 50 + 49
    assert (len(shown.rows), len(shown.rows[0])) == (8, 8)


@pytest.mark.parametrize(
    ("tensor", "worst"), [(torch.tensor(2.0), ()), (torch.tensor([1.0, 2.0]), (1,)), (torch.ones(2, 3), (1, 2))]
)
def test_small_tensors_of_any_shape_are_shown_whole(tensor, worst):
    shown = view(tensor, worst)
    assert shown.where == ""
    assert sum(map(len, shown.rows)) == tensor.numel()


def test_what_is_not_finite_is_shown_and_does_not_wash_out_the_rest():
    shown = view(torch.tensor([[float("inf"), float("nan"), -float("inf"), 0.5]]), (0, 0))
    assert scale(shown) == 0.5
    assert all(word in heat_map("", shown, scale(shown), "") for word in ("∞", "NaN", "−∞", "0.50"))


def test_an_error_keeps_its_own_traceback_cut_to_the_cell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    source = "import torch\ndef causal_mask(q_len, k_len=None):\n    table = torch.ones(q_len)\n    return table @ torch.ones(7, 7)\n"
    shell.run_cell(source)
    shown = learn(MASKS, MASKS.part("causal_mask"), shell.user_ns)["lesson"]["traceback"]
    assert re.search(r"----> +4 +return table @ torch.ones\(7, 7\)", shown)
    assert "table = torch.ones(q_len)" in shown
    assert shown.splitlines()[-1].startswith("RuntimeError: ")
    assert "autograder" not in shown


def test_endless_recursion_is_told_in_a_few_lines():
    source = "def causal_mask(q_len, k_len=None):\n    return causal_mask(q_len, k_len)\n"
    namespace = {}
    exec(source, namespace)
    shown = learn(MASKS, MASKS.part("causal_mask"), namespace)["lesson"]["traceback"].splitlines()
    assert len(shown) == MOST_LINES + 1
    assert "…" in shown
    assert shown[-1].startswith("RecursionError: ")


def test_an_error_before_the_first_own_line_is_not_said_to_have_stopped_there():
    told = lesson("padding_mask", lambda lengths: lengths)
    assert "traceback" not in told
    assert "raises TypeError" in told["message"]["en"]


def test_an_interrupt_ends_the_whole_check_and_shows_where_it_was():
    calls = []

    def looping(q_len, k_len=None):
        calls.append(q_len)
        raise KeyboardInterrupt

    told = learn(MASKS, MASKS.part("causal_mask"), {"causal_mask": looping})
    assert len(calls) == 1
    assert told["verdict"] == "timeout"
    assert "you stopped it" in told["lesson"]["message"]["en"]
    assert told["lesson"]["traceback"].splitlines()[-1] == "KeyboardInterrupt"


def test_what_is_not_written_is_told_where_to_begin():
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
def test_numbers_keep_what_tells_them_apart(x, shown):
    assert number(x) == shown


def test_a_failure_leads_to_the_section_that_teaches_the_part():
    shown = check("causal_mask", lang="zh", namespace={"causal_mask": upper_left})
    assert f"第 6 章《{section(MASKS, MASKS.part('causal_mask'))['title']['zh']}》" in shown.text
    assert f'href="{SITE}zh/06_masks.html#masks-alignment"' in shown.html


def test_every_part_has_a_section_in_both_books(root):
    for exercise in catalogue().values():
        for part in exercise.parts:
            assert all(section(exercise, part)["title"].values())
    assert f"baseurl: {SITE}" in (root / "_config.yml").read_text(encoding="utf-8")
    assert (root / BOOK).is_dir()


def test_styles_are_inline_and_leave_text_in_the_colour_of_the_page():
    """A colour of its own is given to text only where the ground has one too: on badges and marks."""
    shown = check("causal_mask", lang="en", namespace={"causal_mask": upper_left}).html
    assert "<style" not in shown
    assert "class=" not in shown
    for style in re.findall(r'style="([^"]*)"', shown):
        colour = re.search(r"(?:^|;)color:([^;]*)", style)
        assert colour is None or colour[1] == "inherit" or "background:#" in style


def test_when_one_part_is_right_the_open_ones_are_named_and_when_all_are_why_it_works():
    first = check("causal_mask", lang="en", namespace=REFERENCE).text
    assert "Still open here: `padding_mask`" in first
    last = [check(part.name, lang="en", namespace=REFERENCE).text for part in MASKS.parts][-1]
    assert afterwards(MASKS)["why"]["en"] in last
    assert afterwards(MASKS)["next"]["en"] in last


def test_a_hint_can_be_gone_back_to_and_one_that_is_none_is_refused():
    first = hint("causal_mask", lang="en").text
    hint("causal_mask", lang="en")
    assert hint("causal_mask", step=1, lang="en").text == first
    with pytest.raises(ValueError, match="1 to 4"):
        hint("causal_mask", step=9)


def test_hints_go_on_where_they_were_in_the_next_session():
    hint("causal_mask", lang="en")
    assert progress.load()["06_masks"]["causal_mask"]["hints"] == 1
    assert "hint 2 of 4" in hint("causal_mask", lang="en").text


def test_when_marks_count_nothing_of_the_inputs_is_told(tmp_path):
    wrong = next(mistake for mistake in mistakes_of(MASKS.module) if mistake.part == "masked_attention")
    path = hand_in(tmp_path, "somebody", MASKS, with_mistake(MASKS, wrong))
    result = grade("somebody", MASKS.name, str(path), "a salt").result
    part = next(part for part in result["parts"] if part["id"] == "masked_attention")
    assert set(part) == {"id", "score", "max_score", "verdict", "mistake", "message", "promises"}
    assert "mask=" not in json.dumps(result)
