"""The command line: what it prints and how it ends."""

import json
import shutil

import pytest

from autograder.catalogue import catalogue, find
from autograder.cli import main
from autograder.specimens import hand_in, solution

MASKS = find("06_masks")


def test_list_names_every_part(capsys):
    assert main(["list", "--lang", "en"]) == 0
    shown = capsys.readouterr().out
    assert all(part.name in shown for exercise in catalogue().values() for part in exercise.parts)


def test_list_speaks_chinese(capsys):
    assert main(["list", "--lang", "zh"]) == 0
    assert "掩码" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["grade", "/no/such/folder"], "no such folder"),
        (["audit", "99_nothing"], "no exercise is called '99_nothing'"),
        (["check", "99_nothing"], "06_masks"),
        (["release", "99_nothing"], "06_masks"),
        (["bench", "nothing"], "throughput"),
    ],
)
def test_what_cannot_be_done_ends_with_2_and_says_why(capsys, command, said):
    assert main(command) == 2
    assert said in capsys.readouterr().err


def test_an_empty_folder_is_told_the_layout(capsys, tmp_path):
    assert main(["grade", str(tmp_path), "--lang", "en"]) == 2
    assert "<student>/<exercise>" in capsys.readouterr().err


def test_a_file_of_unknown_name_is_told_the_names(capsys, tmp_path):
    (tmp_path / "homework.ipynb").write_text("{}")
    assert main(["grade", str(tmp_path / "homework.ipynb")]) == 2
    assert "06_masks" in capsys.readouterr().err


def test_a_single_file_is_graded(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = hand_in(tmp_path / "in", "somebody", MASKS, solution(MASKS))
    assert main(["grade", str(path), "--out", "out", "--lang", "en"]) == 0
    result = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))["submissions"]
    assert [(r["student"], r["score"]) for r in result] == [("somebody", 20)]
    assert "somebody/06_masks: 20/20 pass" in capsys.readouterr().out


def test_a_device_that_is_not_there_is_refused_clearly(tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU, so there is nothing to refuse")
    with pytest.raises(SystemExit, match="no device cuda"):
        main(["grade", str(tmp_path), "--device", "cuda"])


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_the_solution_passes_on_other_devices(device):
    import torch

    from autograder.examiner import examination
    from autograder.proxy import Local, Student

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there[device]:
        pytest.skip(f"this machine has no {device}")
    exam = examination(MASKS)
    namespace = {part.name: getattr(exam.reference, part.name) for part in MASKS.parts}
    results = exam.examine(Student(Local(namespace, device)), "")
    assert all(result.verdict == "pass" for result in results if result.part.name == "masked_attention")


def test_check_tells_a_learner_what_is_right_and_what_is_not(capsys, tmp_path, root):
    from rich.console import Console

    from autograder.selfcheck import check_notebooks
    from autograder.specimens import with_answer

    inverted = "def masked_attention(q, k, v, mask):\n    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(mask, -torch.inf)\n    w = s.softmax(-1).nan_to_num(0.0)\n    return w @ v, w"
    hand_in(tmp_path, "exercises", MASKS, with_answer(solution(MASKS), "masked_attention", inverted))
    check_notebooks([MASKS], "en", Console(width=200), tmp_path)
    shown = capsys.readouterr().out
    assert "✓ causal_mask" in shown
    assert "The mask is inverted" in shown
    shutil.rmtree(tmp_path / "exercises")
    check_notebooks([MASKS], "zh", Console(width=200), tmp_path)
    assert "无法打开" in capsys.readouterr().out


def test_release_check_is_content_with_the_repository(capsys):
    assert main(["release", "--check", "06_masks", "--lang", "en"]) == 0
    assert "up to date" in capsys.readouterr().out
