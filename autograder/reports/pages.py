"""HTML pages: a student's feedback and the class report, each one file in both languages.

Everything that came from a student is escaped. The content policy of a page allows only its own script and style, by
their hashes. A page loads nothing from any server.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from autograder.catalogue import catalogue
from autograder.hints import afterwards
from autograder.intake.submission import Submission
from autograder.results import SubmissionReport
from autograder.sections import section
from autograder.verdicts import VERDICT_WORDS, Verdict

from .card import inline
from .statistics import class_statistics, title


def feedback(report: SubmissionReport, lang: str) -> str:
    """What one student reads about one exercise."""
    exercise = catalogue().get(report.exercise)
    taught = {part.name: section(exercise, part) for part in exercise.parts} if exercise else {}
    done = afterwards(exercise) if exercise and report.verdict is Verdict.PASS else None
    return _rendered("feedback.html", lang, report=report, title=title(report.exercise), taught=taught, done=done)


def class_report(
    reports: list[SubmissionReport], lang: str, folder_of: Callable[[str], str], submissions: Iterable[Submission] = ()
) -> str:
    """What the instructor reads about the whole class."""

    def page_of(student: str, exercise: str) -> str:
        return quote(os.fsencode(folder_of(student))) + "/" + quote(os.fsencode(exercise)) + ".html"

    statistics = class_statistics(reports, submissions)
    return _rendered("class.html", lang, reports=reports, page_of=page_of, **vars(statistics))


def _rendered(template: str, lang: str, **about: Any) -> str:
    style, script = own("page.css"), own("page.js")
    policy = (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = templates().get_template(template)
    return page.render(lang=lang, style=style, script=script, policy=policy, verdicts=VERDICT_WORDS, **about)


@cache
def templates() -> Environment:
    """The templates of the pages. The filter `inline` shows `code` as code."""
    found = Environment(
        loader=PackageLoader("autograder.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters["inline"] = lambda words: Markup(inline(words))
    return found


@cache
def own(name: str) -> Markup:
    """One of our own files, which is put into the page without escaping."""
    loader = templates().loader
    assert loader is not None
    return Markup(loader.get_source(templates(), name)[0])


@cache
def digest(content: str) -> str:
    """The hash by which a content policy allows a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
