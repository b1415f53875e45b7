"""`check` and `hint`, as a learner calls them."""

import pytest
import torch

from autograder import check, hint
from autograder.reference import ch06_masks


def test_a_right_answer_is_all_green():
    shown = check("causal_mask", lang="en", namespace={"causal_mask": ch06_masks.causal_mask})
    assert repr(shown).startswith("causal_mask: right (3/3)")
    assert "✗" not in repr(shown)


def test_a_wrong_answer_is_named_in_both_languages_as_text_and_html():
    wrong = {"causal_mask": lambda q_len, k_len=None: ~ch06_masks.causal_mask(q_len, k_len)}
    english = check("causal_mask", lang="en", namespace=wrong)
    chinese = check("causal_mask", lang="zh", namespace=wrong)
    assert "The mask is upside down" in repr(english)
    assert "掩码反了" in repr(chinese)
    assert "The mask is upside down" in english._repr_html_()
    assert 'lang="zh-CN"' in chinese._repr_html_()


def test_it_finds_the_answer_in_the_callers_own_namespace():
    namespace = {}
    exec("from autograder import check\ndef causal_mask(q_len, k_len=None): raise NotImplementedError()", namespace)
    exec("shown = check('causal_mask', lang='en')", namespace)
    assert "not written" in repr(namespace["shown"])


def test_what_a_learners_error_says_is_escaped():
    def causal_mask(q_len, k_len=None):
        raise RuntimeError("<script>alert(1)</script>")

    shown = check("causal_mask", lang="en", namespace={"causal_mask": causal_mask})._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_checking_leaves_the_learners_settings_alone():
    torch.manual_seed(3)
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    check("causal_mask", lang="en", namespace={"causal_mask": ch06_masks.causal_mask})
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_hints_come_one_at_a_time_and_stay_at_the_last():
    shown = [repr(hint("padding_mask", lang="en")) for _ in range(12)]
    assert shown[0] != shown[1]
    assert shown[-1] == shown[-2]


def test_an_unknown_part_is_told_the_names():
    with pytest.raises(LookupError, match="masked_attention"):
        check("mask_attention")
