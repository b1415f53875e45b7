"""A learner's progress as one HTML page: exercises, parts, mistakes met and overcome, in both languages."""

from datetime import date
from typing import Any

from autograder.catalogue import Exercise, Part, catalogue
from autograder.language import Text
from autograder.mistakes import mistakes_of
from autograder.reports.pages import digest, own, templates
from autograder.sections import section
from autograder.verdicts import VERDICT_WORDS, Verdict

from . import progress

Row = dict[str, Any]  # what the template shows


def page(lang: str) -> str:
    """Self-contained HTML that loads and runs nothing. The reader can switch the language; it starts with `lang`."""
    style = own("progress.css")
    exercises = [_exercise(exercise, progress.load().get(exercise.name, {})) for exercise in catalogue().values()]
    about = {"lang": lang, "style": style, "digest": digest(style), "today": date.today().isoformat()}
    shown = templates().get_template("progress.html")
    return shown.render(exercises=exercises, **about, **_totals(exercises))


def _exercise(exercise: Exercise, known: dict[str, progress.Entry]) -> Row:
    parts = [_part(exercise, part, known.get(part.name)) for part in exercise.parts]
    return {
        "name": exercise.name,
        "title": exercise.title,
        "parts": parts,
        "right": sum(part["verdict"] == "pass" for part in parts),
        "score": sum(part["score"] for part in parts),
        "points": exercise.points,
        "begun": any(part["checks"] for part in parts),
    }


def _part(exercise: Exercise, part: Part, entry: progress.Entry | None) -> Row:
    entry = entry or progress.untouched()
    texts = {mistake.name: mistake.text for mistake in mistakes_of(exercise.module)} if entry["mistakes"] else {}
    met = []
    for name, seen in entry["mistakes"].items():
        days = {"met": _day(seen["met"]), "overcome": _day(seen["overcome"])}
        met.append({"text": texts.get(name, Text(name, name)), "times": seen["times"], **days})
    return entry | {
        "name": part.name,
        "points": part.points,
        "word": VERDICT_WORDS.get(entry["verdict"], VERDICT_WORDS[Verdict.MISSING]),
        "right": _day(entry["right"]),
        "mistakes": met,
        "section": section(exercise, part) if met else None,
    }


def _totals(exercises: list[Row]) -> Row:
    mistakes = [met for exercise in exercises for part in exercise["parts"] for met in part["mistakes"]]
    return {
        "score": sum(exercise["score"] for exercise in exercises),
        "points": sum(exercise["points"] for exercise in exercises),
        "done": sum(exercise["right"] == len(exercise["parts"]) for exercise in exercises),
        "met": len(mistakes),
        "overcome": sum(met["overcome"] is not None for met in mistakes),
    }


def _day(moment: str | None) -> str | None:
    return moment and moment[:10]
