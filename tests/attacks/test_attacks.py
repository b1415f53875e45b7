"""Every attack fails: it gets no marks, reads no secrets, leaves nothing behind, and neither stops nor slows the grading."""

import os
import shutil
import statistics
import sys
from pathlib import Path

import ordinary_user
import pytest

from attacks import verdicts
from attacks.corpus import CLASSES, corpus, put_control, put_neighbour
from attacks.target import Target, new_target

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox needs Linux")

ATTACKS = corpus()
# Faults of the machine (28) are tested in test_machine_fails.py; repeated grading (29) and other students (30) in the tests
# below.
ELSEWHERE = {28, 29, 30}
PRINTS_INPUTS = next(attack for attack in ATTACKS if attack.name == "18_hidden_inputs/told_by_an_error")
SLOWER = 5  # times a right answer may take when others attack; machines are noisy
WITHOUT = {  # layers that a machine may lack, and the classes of attack that they stop
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
    """Right answers and only one attack, which prints hidden inputs; with another salt."""
    with new_target() as target:
        for number in range(8):
            put_control(target, f"{number:02} control")
        put_neighbour(target)
        PRINTS_INPUTS.put(target, PRINTS_INPUTS)
        yield verdicts.run(target, [PRINTS_INPUTS])


@pytest.fixture(scope="module")
def as_current_user():
    with new_target() as target:
        verdicts.hand_in(target, ATTACKS)
        yield target, verdicts.run(target, ATTACKS)


@pytest.fixture(scope="module")
def as_ordinary_user(as_current_user):
    """Graded by an ordinary user, with the same salt and more threads."""
    first, _ = as_current_user
    with new_target() as target:
        target.canaries["salt"] = first.canaries["salt"]
        verdicts.hand_in(target, ATTACKS)
        if os.geteuid() == 0:
            chown(target.folder, ordinary_user.SOMEBODY)
        yield target, verdicts.run(target, ATTACKS, ordinary_user.run, threads="2")


@pytest.fixture(params=["as_current_user", "as_ordinary_user"], scope="module")
def graded(request) -> tuple[Target, verdicts.Run]:
    return request.getfixturevalue(request.param)


def test_every_class_of_attack_has_its_programs():
    numbers = {attack.number for attack in ATTACKS}
    assert numbers | ELSEWHERE == set(CLASSES)
    assert len(ATTACKS) >= 80


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_each_attack_describes_what_it_tries_and_what_must_happen(attack):
    tries, _, must = attack.description.partition(". ")
    assert tries
    assert must.endswith(".")


def test_no_attack_succeeds(graded):
    _, run = graded
    assert run.successes == {}, run.printed[-2000:]


def test_the_run_finishes_without_grader_errors(graded):
    _, run = graded
    assert run.status == 0, run.printed[-3000:]
    assert {result["verdict"] for result in run.results.values()}.isdisjoint({"grader_error"})
    handed_in = {
        attack.shown for attack in ATTACKS if attack.name != "17_links_and_paths/link_to_another_students_folder"
    }
    assert handed_in <= set(run.results)


def test_right_answers_among_attacks_keep_full_marks(graded):
    _, run = graded
    assert len(run.controls()) == len({attack.number for attack in ATTACKS})
    assert {result["score"] for result in [*run.controls(), run.results["neighbour"]]} == {20}
    for attack in ATTACKS:
        if attack.earns == 20 and attack.number in (3, 19, 22, 25, 26, 27):
            assert run.results[attack.shown]["score"] == 20, attack.name


def test_right_answers_among_attacks_are_not_slowed(graded, alone):
    _, run = graded
    usual, here = (statistics.median(result["seconds"] for result in r.controls()) for r in (alone, run))
    assert here <= SLOWER * usual


def test_nothing_is_left_behind(graded):
    """No process, mount, connection or file is left, and the class folder is unchanged."""
    _, run = graded
    assert run.left_behind == []


def test_who_grades_makes_no_difference_to_any_mark(as_current_user, as_ordinary_user):
    """Graded twice, by another user and with other thread counts: the same marks and verdicts.

    Timeouts depend on how busy the machine is, and are left out.
    """
    one, other = (
        {student: (r["score"], [part["verdict"] for part in r["parts"]]) for student, r in run.results.items()}
        for _, run in (as_current_user, as_ordinary_user)
    )
    timely = [who for who in one if "timeout" not in one[who][1] + other[who][1]]
    assert len(timely) > 0.8 * len(one)
    assert {who: (one[who], other[who]) for who in timely if one[who] != other[who]} == {}


def test_hostile_words_reach_pages_and_tables_as_text(graded):
    target, _ = graded
    for page in target.out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for word in ("<script>alert", "<script>document", "<img src=x", "<svg onload", "<b>bold"):
            assert word not in text, page
    rows = (target.out / "grades.csv").read_text(encoding="utf-8").splitlines()
    assert not any(row.lstrip('"').startswith(("=", "+", "-", "@", "\t")) for row in rows)


def test_hidden_inputs_differ_from_run_to_run(as_current_user, alone):
    told, again = (run.results[PRINTS_INPUTS.shown]["parts"][-1] for run in (as_current_user[1], alone))
    assert "q is [" in told["message"]["en"]
    assert "q is [" in again["message"]["en"]
    assert told["message"]["en"] != again["message"]["en"]


@pytest.mark.parametrize("layer", WITHOUT)
def test_no_attack_succeeds_where_a_layer_is_missing(layer):
    attacks = [attack for attack in ATTACKS if attack.number in WITHOUT[layer]]
    with new_target() as target:
        verdicts.hand_in(target, attacks)
        run = verdicts.run(target, attacks, without=layer)
        assert run.status == 0, run.printed[-3000:]
        assert {result["score"] for result in run.controls()} == {20}
        assert run.successes == {}
        assert run.left_behind == []


def test_the_checks_notice_what_an_attack_leaves_behind(tmp_path):
    """Each kind of trace is planted here on purpose, because a check that finds nothing proves nothing."""
    attack = ATTACKS[0]
    with new_target() as target:
        put_neighbour(target)
        assert verdicts.achievements(target, attack, {}) == []
        (target.temporary / target.mark(attack.name)).touch()
        shutil.copytree(target.temporary, target.out)
        page = target.out / attack.shown / "06_masks.html"
        page.parent.mkdir()
        page.write_text(f"{target.canaries['neighbour']} {target.mark(attack.name)} read this: x")
        part = {"id": "causal_mask", "score": 3, "max_score": 3}
        seen = verdicts.achievements(target, attack, {attack.shown: {"score": 3, "parts": [part]}})
        kinds = [achieved.partition(":")[0] for achieved in seen]
        assert set(kinds) == {verdicts.MARKS, verdicts.READ, verdicts.LEFT}
        assert kinds.count(verdicts.READ) == 2
