"""Every attack fails safely: no mark it did not earn, nothing read, nothing left, nobody stopped or slowed."""

import os
import shutil
import statistics
import sys
from pathlib import Path

import ordinary_user
import pytest

from attacks import judged
from attacks.corpus import CLASSES, corpus, put_control, put_neighbour
from attacks.scene import Scene, staged

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is made of Linux's means")

ATTACKS = corpus()
# Faults of the machine (28) are in test_machine_fails.py; repeated grading (29) and the others in the class (30) are what
# the tests below look at.
ELSEWHERE = {28, 29, 30}
TELLS = next(attack for attack in ATTACKS if attack.name == "18_hidden_inputs/told_by_an_error")
SLOWER = 5  # times a right answer may take when others attack; machines are noisy
WITHOUT = {  # layers a machine may lack, and the classes of attack that they concern
    "namespaces": (10, 15, 16, 21, 23),
    "landlock": (10, 15, 17),
    "seccomp": (16, 21, 23),
}


def chown(folder: Path, user: int) -> None:
    for here, folders, names in os.walk(folder):
        for name in [".", *folders, *names]:
            os.lchown(os.path.join(here, name), user, user)


@pytest.fixture(scope="module")
def alone():
    """Right answers with nothing between them but the telling of hidden inputs, and another salt."""
    with staged() as scene:
        for number in range(8):
            put_control(scene, f"{number:02} control")
        put_neighbour(scene)
        TELLS.put(scene, TELLS)
        yield judged.run(scene, [TELLS])


@pytest.fixture(scope="module")
def as_root_or_whoever_tests():
    with staged() as scene:
        judged.hand_in(scene, ATTACKS)
        yield scene, judged.run(scene, ATTACKS)


@pytest.fixture(scope="module")
def as_somebody(as_root_or_whoever_tests):
    """Graded by an ordinary user, with the same salt and more threads."""
    first, _ = as_root_or_whoever_tests
    with staged() as scene:
        scene.canaries["salt"] = first.canaries["salt"]
        judged.hand_in(scene, ATTACKS)
        if os.geteuid() == 0:
            chown(scene.folder, ordinary_user.SOMEBODY)
        yield scene, judged.run(scene, ATTACKS, ordinary_user.run, threads="2")


@pytest.fixture(params=["as_root_or_whoever_tests", "as_somebody"], scope="module")
def graded(request) -> tuple[Scene, judged.Run]:
    return request.getfixturevalue(request.param)


def test_every_class_of_attack_has_its_programs():
    numbers = {attack.number for attack in ATTACKS}
    assert numbers | ELSEWHERE == set(CLASSES)
    assert len(ATTACKS) >= 80


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_each_says_what_it_tries_and_what_must_happen(attack):
    tries, _, must = attack.says.partition(". ")
    assert tries
    assert must.endswith(".")


def test_no_attack_succeeds(graded):
    _, run = graded
    assert run.successes == {}, run.printed[-2000:]


def test_the_run_comes_to_its_end_and_blames_no_fault_on_the_grader(graded):
    _, run = graded
    assert run.status == 0, run.printed[-3000:]
    assert {result["verdict"] for result in run.results.values()}.isdisjoint({"grader_error"})
    handed_in = {
        attack.shown for attack in ATTACKS if attack.name != "17_links_and_paths/link_to_another_students_folder"
    }
    assert handed_in <= set(run.results)


def test_right_answers_between_attacks_keep_full_marks(graded):
    _, run = graded
    assert len(run.controls()) == len({attack.number for attack in ATTACKS})
    assert {result["score"] for result in [*run.controls(), run.results["neighbour"]]} == {20}
    for attack in ATTACKS:
        if attack.earns == 20 and attack.number in (3, 19, 22, 25, 26, 27):
            assert run.results[attack.shown]["score"] == 20, attack.name


def test_right_answers_between_attacks_take_no_longer(graded, alone):
    _, run = graded
    usual, here = (statistics.median(result["seconds"] for result in r.controls()) for r in (alone, run))
    assert here <= SLOWER * usual


def test_nothing_is_left_behind(graded):
    """No process, no mount, no word on a socket, no file, and the class folder as it was."""
    _, run = graded
    assert run.left_behind == []


def test_who_grades_makes_no_difference_to_any_mark(as_root_or_whoever_tests, as_somebody):
    """Graded twice, by another user, in another order, with other thread counts: the same marks and verdicts.

    What runs into its time limit depends on how busy the machine is, and is left out.
    """
    one, other = (
        {student: (r["score"], [part["verdict"] for part in r["parts"]]) for student, r in run.results.items()}
        for _, run in (as_root_or_whoever_tests, as_somebody)
    )
    timely = [who for who in one if "timeout" not in one[who][1] + other[who][1]]
    assert len(timely) > 0.8 * len(one)
    assert {who: (one[who], other[who]) for who in timely if one[who] != other[who]} == {}


def test_hostile_words_reach_pages_and_tables_as_text(graded):
    scene, _ = graded
    for page in scene.out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for word in ("<script>alert", "<script>document", "<img src=x", "<svg onload", "<b>bold"):
            assert word not in text, page
    rows = (scene.out / "grades.csv").read_text(encoding="utf-8").splitlines()
    assert not any(row.lstrip('"').startswith(("=", "+", "-", "@", "\t")) for row in rows)


def test_hidden_inputs_told_in_one_run_are_others_in_the_next(as_root_or_whoever_tests, alone):
    told, again = (run.results[TELLS.shown]["parts"][-1] for run in (as_root_or_whoever_tests[1], alone))
    assert "q is [" in told["message"]["en"]
    assert "q is [" in again["message"]["en"]
    assert told["message"]["en"] != again["message"]["en"]


@pytest.mark.parametrize("layer", WITHOUT)
def test_no_attack_succeeds_where_a_layer_is_missing(layer):
    attacks = [attack for attack in ATTACKS if attack.number in WITHOUT[layer]]
    with staged() as scene:
        judged.hand_in(scene, attacks)
        run = judged.run(scene, attacks, without=layer)
        assert run.status == 0, run.printed[-3000:]
        assert {result["score"] for result in run.controls()} == {20}
        assert run.successes == {}
        assert run.left_behind == []


def test_the_judge_sees_what_an_attack_leaves_behind(tmp_path):
    """Each kind of trace is planted here on purpose, for a judge that sees nothing proves nothing."""
    attack = ATTACKS[0]
    with staged() as scene:
        put_neighbour(scene)
        assert judged.achievements(scene, attack, {}) == []
        (scene.temporary / scene.mark(attack.name)).touch()
        shutil.copytree(scene.temporary, scene.out)
        page = scene.out / attack.shown / "06_masks.html"
        page.parent.mkdir()
        page.write_text(f"{scene.canaries['neighbour']} {scene.mark(attack.name)} read this: x")
        part = {"id": "causal_mask", "score": 3, "max_score": 3}
        seen = judged.achievements(scene, attack, {attack.shown: {"score": 3, "parts": [part]}})
        kinds = [achieved.partition(":")[0] for achieved in seen]
        assert set(kinds) == {judged.MARKS, judged.READ, judged.LEFT}
        assert kinds.count(judged.READ) == 2
