"""A sentence that several promises share is written once, so English and Chinese cannot drift apart."""

from collections import defaultdict

import pytest

from autograder.catalogue import catalogue
from autograder.exam import sentences
from autograder.exam.examiner import examination
from autograder.language import Text

SHARED = {name: text for name, text in vars(sentences).items() if isinstance(text, Text)}


@pytest.fixture(scope="module")
def promises():
    """Every promise of every suite, by exercise and test."""
    return {
        (exercise.name, test): found.promise
        for exercise in catalogue().values()
        for test, found in examination(exercise).tests.items()
    }


@pytest.mark.parametrize(("language", "other"), [("en", "zh"), ("zh", "en")])
def test_the_same_sentence_has_the_same_translation(promises, language, other):
    translations = defaultdict(set)
    for promise in promises.values():
        translations[promise.text[language]].add(promise.text[other])
    assert {sentence: found for sentence, found in translations.items() if len(found) > 1} == {}


def test_a_sentence_of_several_promises_comes_from_sentences_py(promises):
    places = defaultdict(list)
    for place, promise in promises.items():
        places[promise.text].append(place)
    shared = {id(text) for text in SHARED.values()}
    written_out = {
        place: text.en
        for text, several in places.items()
        if len(several) > 1
        for place in several
        if id(promises[place].text) not in shared
    }
    assert written_out == {}


def test_every_shared_sentence_is_shared(promises):
    used = [id(promise.text) for promise in promises.values()]
    assert [name for name, text in SHARED.items() if used.count(id(text)) < 2] == []
