"""Pages for people: a student's feedback and the class report, each one file in both languages.

Everything that came from a student is escaped. A page allows no script, style or picture but its own, by their hashes,
and asks nothing of any host.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .card import inline
from .catalogue import catalogue
from .findings import seen
from .hinting import afterwards
from .language import VERDICTS
from .mistakes import mistakes_of
from .overview import overview, title
from .sections import section
from .submission import Submission


def feedback(result: dict, lang: str) -> str:
    """What one student reads about one exercise."""
    exercise = catalogue().get(result["exercise"])
    about = {"taught": {}, "mistakes": {}, "done": None}
    if exercise:
        about["taught"] = {part.name: section(exercise, part) for part in exercise.parts}
        about["mistakes"] = {mistake.name: mistake.text for mistake in mistakes_of(exercise.module)}
        about["done"] = afterwards(exercise) if result["verdict"] == "pass" else None
    return _rendered("feedback.html", lang, result=result, title=title(result["exercise"]), **about)


def class_report(
    results: list[dict], lang: str, folder_of: Callable[[str], str], submissions: Iterable[Submission] = ()
) -> str:
    """What the instructor reads about everybody."""

    def page_of(student: str, exercise: str) -> str:
        return quote(os.fsencode(folder_of(student))) + "/" + quote(os.fsencode(exercise)) + ".html"

    return _rendered("class.html", lang, results=results, page_of=page_of, **overview(results, submissions))


def _rendered(template: str, lang: str, **about) -> str:
    style, script = own("page.css"), own("page.js")
    policy = (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = templates().get_template(template)
    return page.render(lang=lang, style=style, script=script, policy=policy, verdicts=VERDICTS, **about)


@cache
def templates() -> Environment:
    """Where the pages come from. `inline` shows `code` as code, `seen` leaves out what a page shows by itself."""
    found = Environment(
        loader=PackageLoader("autograder"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters["inline"] = lambda words: Markup(inline(words))
    found.filters["seen"] = seen
    return found


@cache
def own(name: str) -> Markup:
    """One of our own files, to stand in the page as it is."""
    return Markup(templates().loader.get_source(templates(), name)[0])


@cache
def digest(content: str) -> str:
    """How a content policy names what it allows."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
