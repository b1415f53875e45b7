"""The command line: what it prints and its exit status."""

import json
import pickle
import shutil

import pytest
from rich.console import Console

from autograder.catalogue import FILE, CatalogueError, catalogue, find, load
from autograder.checks.samples import hand_in, solution, with_answer
from autograder.cli import COMMANDS, main
from autograder.errors import InputError, Unfinished
from autograder.gradebook.release import ReleaseError
from autograder.grading.task import UnsoundGrader
from autograder.isolation.guarantees import UntrustedMachine
from autograder.isolation.zygote import ZygoteError
from autograder.learner.check_files import check_notebooks

MASKS = find("06_masks")


def test_list_names_every_part(capsys):
    assert main(["list", "--lang", "en"]) == 0
    shown = capsys.readouterr().out
    assert all(part.name in shown for exercise in catalogue().values() for part in exercise.parts)


def test_list_is_shown_in_chinese(capsys):
    assert main(["list", "--lang", "zh"]) == 0
    assert "掩码" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "en", "zh"),
    [
        (["grade", "/no/such/folder"], "no such folder", "没有这个文件夹"),
        (["audit", "99_nothing"], "no exercise is called '99_nothing'", "没有叫 '99_nothing' 的练习"),
        (["check", "99_nothing"], "06_masks", "06_masks"),
        (["release", "99_nothing"], "06_masks", "06_masks"),
        (["bench", "nothing"], "throughput", "throughput"),
        (["record", "symptoms", "99_nothing"], "no exercise is called '99_nothing'", "没有叫 '99_nothing' 的练习"),
        (["record", "translation", "99_nothing"], "no page is called '99_nothing'", "没有叫 '99_nothing' 的页面"),
    ],
)
def test_bad_input_ends_with_2_and_a_reason(capsys, command, en, zh):
    for lang, said in (("en", en), ("zh", zh)):
        assert main([*command, "--lang", lang]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("kind", [InputError, Unfinished, ReleaseError, UntrustedMachine, UnsoundGrader, ZygoteError])
def test_a_user_error_is_printed_in_the_chosen_language(capsys, monkeypatch, kind):
    def stop(args, console):
        raise pickle.loads(pickle.dumps(kind("no room", "没有空间")))  # as from another process

    monkeypatch.setitem(COMMANDS, "list", stop)
    for lang, said in (("en", "autograder: no room\n"), ("zh", "autograder: 没有空间\n")):
        assert main(["list", "--lang", lang]) == (2 if kind is InputError else 3)
        assert capsys.readouterr().err == said


def test_a_catalogue_error_has_both_languages(tmp_path):
    faulty = FILE.read_text(encoding="utf-8").replace("difficulty = 4", "difficulty = 6")
    (tmp_path / "catalogue.toml").write_text(faulty, encoding="utf-8")
    with pytest.raises(CatalogueError) as fault:
        load(tmp_path / "catalogue.toml")
    assert "difficulty is 1 to 5" in fault.value.message.en
    assert "difficulty 应在 1 到 5 之间" in fault.value.message.zh


def test_an_empty_folder_explains_the_layout(capsys, tmp_path):
    assert main(["grade", str(tmp_path), "--lang", "en"]) == 2
    assert "<student>/<exercise>" in capsys.readouterr().err


def test_a_file_with_an_unknown_name_lists_the_exercises(capsys, tmp_path):
    (tmp_path / "homework.ipynb").write_text("{}")
    assert main(["grade", str(tmp_path / "homework.ipynb")]) == 2
    assert "06_masks" in capsys.readouterr().err


def test_a_single_file_is_graded(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = hand_in(tmp_path / "in", "somebody", MASKS, solution(MASKS))
    assert main(["grade", str(path), "--out", "out", "--lang", "en"]) == 0
    written = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))["submissions"]
    assert [(r["student"], r["score"]) for r in written] == [("somebody", 20)]
    assert "somebody/06_masks: 20/20 pass" in capsys.readouterr().out


def test_a_missing_device_is_refused_with_a_reason(capsys, tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU, so there is nothing to refuse")
    for lang, said in (("en", "no device cuda"), ("zh", "没有 cuda 设备")):
        assert main(["grade", str(tmp_path), "--device", "cuda", "--lang", lang]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_the_solution_passes_on_other_devices(device):
    import torch

    from autograder.exam.examiner import examination
    from autograder.exam.proxy import Local, Student

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there[device]:
        pytest.skip(f"this machine has no {device}")
    exam = examination(MASKS)
    namespace = {part.name: getattr(exam.reference, part.name) for part in MASKS.parts}
    results = exam.examine(Student(Local(namespace, device)), "")
    assert all(result.verdict == "pass" for result in results if result.part.name == "masked_attention")


def test_check_shows_what_is_right_and_what_is_wrong(capsys, tmp_path, root):
    inverted = "def masked_attention(q, k, v, mask):\n    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(mask, -torch.inf)\n    w = s.softmax(-1).nan_to_num(0.0)\n    return w @ v, w"
    hand_in(tmp_path, "exercises", MASKS, with_answer(solution(MASKS), "masked_attention", inverted))
    check_notebooks([MASKS], "en", Console(width=200), tmp_path)
    shown = capsys.readouterr().out
    assert "✓ causal_mask" in shown
    assert "The mask is inverted" in shown
    shutil.rmtree(tmp_path / "exercises")
    check_notebooks([MASKS], "zh", Console(width=200), tmp_path)
    assert "无法打开" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("def causal_mask(:", "SyntaxError: invalid syntax (cell 2, line 1)"),
        ("def causal_mask(q_len, k_len=None):\n    return 1 / 0", "cell 2, line 2, in causal_mask"),
    ],
)
def test_an_error_is_shown_with_the_name_of_its_cell(capsys, tmp_path, answer, said):
    hand_in(tmp_path, "exercises", MASKS, with_answer(solution(MASKS), "causal_mask", answer))
    check_notebooks([MASKS], "en", Console(width=200), tmp_path)
    shown = capsys.readouterr().out
    assert said in shown
    assert "ipython" not in shown.lower()


def test_release_check_finds_the_repository_up_to_date(capsys):
    assert main(["release", "--check", "06_masks", "--lang", "en"]) == 0
    assert "up to date" in capsys.readouterr().out
