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

from .catalogue import catalogue
from .language import VERDICTS
from .overview import overview, title
from .sections import section
from .submission import Submission


def feedback(result: dict, lang: str) -> str:
    """What one student reads about one exercise."""
    exercise = catalogue().get(result["exercise"])
    taught = {part.name: section(exercise, part) for part in exercise.parts} if exercise else {}
    return _rendered("feedback.html", lang, result=result, title=title(result["exercise"]), taught=taught)


def class_report(
    results: list[dict], lang: str, folder_of: Callable[[str], str], submissions: Iterable[Submission] = ()
) -> str:
    """What the instructor reads about everybody."""

    def page_of(student: str, exercise: str) -> str:
        return quote(os.fsencode(folder_of(student))) + "/" + quote(os.fsencode(exercise)) + ".html"

    return _rendered("class.html", lang, results=results, page_of=page_of, **overview(results, submissions))


def _rendered(template: str, lang: str, **about) -> str:
    style, script = _own("page.css"), _own("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _templates().get_template(template)
    return page.render(lang=lang, style=style, script=script, policy=policy, verdicts=VERDICTS, **about)


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("autograder"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


@cache
def _own(name: str) -> Markup:
    """One of our own files, to stand in the page as it is."""
    return Markup(_templates().loader.get_source(_templates(), name)[0])


@cache
def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
