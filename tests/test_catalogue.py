"""The catalogue is checked as it is read."""

import pytest

from autograder.catalogue import FILE, CatalogueError, catalogue, find, load


def test_every_exercise_totals_twenty_points():
    assert {exercise.points for exercise in catalogue().values()} == {20}


@pytest.mark.parametrize("name", ["06_masks", "06", "6", "masks"])
def test_an_exercise_is_found_by_number_or_name(name):
    assert find(name).name == "06_masks"


def test_an_unknown_exercise_is_not_found():
    with pytest.raises(LookupError):
        find("99_nothing")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("points = 5", "points = 4", "add up to"),
        ("points = 5", "points = 5.25", "whole or half"),
        ('name = "06_masks"', 'name = "masks"', "two digits"),
        ('name = "06_masks"', 'name = "05_softmax"', "listed twice"),
        ('name = "padding_mask"', 'name = "causal_mask"', "listed twice"),
        ('signature = "(lengths, max_len)"', 'signature = "(lengths, max_len"', "not a signature"),
        ('signature = "(lengths, max_len)"\n', "", "signature missing"),
        ("difficulty = 4", "difficulty = 6", "1 to 5"),
        ("wall_seconds = 20", "wall_seconds = -1", "positive"),
        ("wall_seconds = 20", "walls = 20", "wanted exactly"),
        ('forbidden = ["fused attention"]', 'forbidden = ["confused attention"]', "confused attention"),
        ('kind = "class"', 'kind = "clas"', "function or class"),
        ('title = { en = "Masks", zh = "掩码" }', 'title = { en = "Masks" }', "en and zh"),
        ("[limits]", "[limits", "catalogue.toml"),
    ],
)
def test_a_faulty_catalogue_is_refused_with_the_reason(tmp_path, old, new, complaint):
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    faulty = tmp_path / "catalogue.toml"
    faulty.write_text(
        text.replace(old, new, 1 if "listed" in complaint or "sign" in complaint else -1), encoding="utf-8"
    )
    with pytest.raises(CatalogueError, match=complaint):
        load(faulty)
