"""`check` and `hint`, as a learner calls them."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import torch

from autograder import check, hint
from autograder.catalogue import catalogue
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


def test_check_finds_the_answer_in_the_callers_namespace():
    namespace = {}
    exec("from autograder import check\ndef causal_mask(q_len, k_len=None): raise NotImplementedError()", namespace)
    exec("shown = check('causal_mask', lang='en')", namespace)
    assert "not written" in repr(namespace["shown"])


def test_the_text_of_an_error_is_escaped():
    def causal_mask(q_len, k_len=None):
        raise RuntimeError("<script>alert(1)</script>")

    shown = check("causal_mask", lang="en", namespace={"causal_mask": causal_mask})._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_check_does_not_change_the_learners_settings():
    torch.manual_seed(3)
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    check("causal_mask", lang="en", namespace={"causal_mask": ch06_masks.causal_mask})
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_a_forbidden_operator_is_refused_and_works_again_afterwards():
    """`torch.special.softmax` has another name, but uses the same forbidden operator."""
    answers = {"stable_softmax": lambda x, dim=-1: torch.special.softmax(x, dim)}
    shown = check("stable_softmax", lang="en", namespace=answers)
    assert "does the exercise for you" in repr(shown)
    assert "(0/" in repr(shown)
    assert torch.softmax(torch.ones(2), 0).tolist() == [0.5, 0.5]


def test_hints_come_one_at_a_time_and_stay_at_the_last():
    shown = [repr(hint("padding_mask", lang="en")) for _ in range(12)]
    assert shown[0] != shown[1]
    assert shown[-1] == shown[-2]


def test_an_unknown_part_lists_the_known_ones():
    with pytest.raises(LookupError, match="masked_attention"):
        check("mask_attention")


ON_COLAB = """
import autograder
from IPython.core.interactiveshell import InteractiveShell
from autograder.catalogue import find
from autograder.exam.symptoms import symptoms
from autograder.learner.progress_page import page

shell = InteractiveShell.instance()
shell.run_cell({setup!r}).raise_error()
shell.run_cell("def causal_mask(q_len, k_len=None):\\n    return torch.ones(q_len, k_len or q_len).tril().bool()").raise_error()
shown = shell.run_cell("check('causal_mask', lang='zh')").result
assert "三角形从左上角开始" in shown.html, shown.text
assert "第 6 章《掩码》" in shown.text, shown.text
assert shell.run_cell("hint('causal_mask')").result.text
assert "<meter" in page("en")
assert symptoms(find("06_masks"))
print(autograder.__file__)
"""


def setup_cell(root, exercise) -> str:
    notebook = json.loads((root / "exercises" / exercise / f"{exercise}.ipynb").read_text(encoding="utf-8"))
    return next(
        "".join(c["source"]) for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == "setup"
    )


def test_every_exercise_installs_the_package_where_it_is_missing(root):
    settings = (root / "_config.yml").read_text(encoding="utf-8")
    address = re.search(r"url: (https://github\.com/\S+)", settings)[1]
    for exercise in catalogue():
        assert f"install --quiet git+{address}" in setup_cell(root, exercise)


def test_the_installed_package_is_enough_for_an_exercise(root, tmp_path):
    """As on Colab: no checkout, no book, only what pip installs."""
    source = tmp_path / "source"
    shutil.copytree(root / "autograder", source / "autograder", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(root / name, source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    called([*pip, "--target", str(tmp_path / "installed"), str(source)], tmp_path)
    code = ON_COLAB.format(setup=setup_cell(root, "06_masks"))
    assert "installed" in called([sys.executable, "-c", code], tmp_path, PYTHONPATH=str(tmp_path / "installed"))


def called(command, folder, **environment) -> str:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
