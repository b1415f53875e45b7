"""What the two books need from Sphinx beyond Jupyter Book: the switch of languages, the exercise card, the glossary,
Chinese search, and the theme's last English words."""

import re
import tempfile
import tomllib
from pathlib import Path

import yaml
from babel.messages import Catalog
from babel.messages.mofile import write_mo
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.addnodes import download_reference, index
from sphinx.search import languages as search_languages
from sphinx.search.zh import SearchChinese
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

SHARED = Path(__file__).parent
ROOT = SHARED.parents[1]
LANGUAGES = yaml.safe_load((SHARED / "languages.yml").read_text(encoding="utf-8"))
NOT_WANTED = re.compile(r"thebe|fontawesome|sphinx-design|design-tabs|toggle", re.IGNORECASE)
ONLY_ON = {"translations.js": "search"}  # what no other page says
IN_THE_BODY = {
    "<img ": '<img loading="lazy" ',  # pictures are loaded when they come near
    ' aria-label="Toggle hidden content"': "",  # a summary is named by what it says
    "<script>kernelName = 'python3'</script>": "",  # and the next: for running cells in the page, which we do not
    ' role="doc-biblioentry"': "",  # a deprecated role
    '<div role="list" class="citation-list">': '<div class="citation-list">',  # its children are no list items
}
THEBE = re.compile(r'<script type="text/x-thebe-config">.*?</script>', re.DOTALL)
HANZI = re.compile(r"[一-鿿]")
WIDE_MARK = "[，。、；：？！「」『』（）《》…—]"
WIDE = "[一-鿿，。、；：？！「」『』（）《》…—]"


def glossary_terms() -> list[dict]:
    return tomllib.loads((SHARED / "glossary.toml").read_text(encoding="utf-8"))["term"]


def other(lang: str) -> str:
    return "zh" if lang == "en" else "en"


class ExerciseCard(SphinxDirective):
    """`{exercise} 06_masks`: its parts with points, minutes and difficulty, and the ways to open it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name, words = self.arguments[0], LANGUAGES[self.config.course_language]["words"]
        catalogue_file = ROOT / "autograder" / "catalogue.toml"
        self.env.note_dependency(str(catalogue_file))
        catalogue = tomllib.loads(catalogue_file.read_text(encoding="utf-8"))
        exercise = next((entry for entry in catalogue["exercise"] if entry["name"] == name), None)
        if exercise is None:
            raise self.error(f"no exercise is called {name!r} in autograder/catalogue.toml")
        parts = exercise["part"]
        card = nodes.container(classes=["exercise-card"])
        card += nodes.paragraph("", "", nodes.strong(text=exercise["title"][self.config.course_language]))
        total = {key: f"{sum(part[key] for part in parts):g}" for key in ("points", "minutes")}
        card += nodes.paragraph(text=words["total"].format(**total))
        card += self._table(parts, words)
        card += self._links(name, words)
        return [card]

    def _table(self, parts, words) -> nodes.table:
        group = nodes.tgroup(cols=4)
        group += [nodes.colspec(colwidth=width) for width in (6, 1, 1, 2)]
        head, body = nodes.thead(), nodes.tbody()
        head += _row(nodes.Text(words[key]) for key in ("part", "points", "minutes", "difficulty"))
        for part in parts:
            stars = nodes.inline("", f"{'★' * part['difficulty']:☆<5}", classes=["stars"])
            body += _row(
                [nodes.literal(text=part["name"]), nodes.Text(part["points"]), nodes.Text(part["minutes"]), stars]
            )
        group += [head, body]
        return nodes.table("", group)

    def _links(self, name, words) -> nodes.paragraph:
        path = f"exercises/{name}/{name}.ipynb"
        download = download_reference("", "", nodes.Text(words["download"]), reftarget=f"../../{path}")
        owner = self.config.course_repository.removeprefix("https://github.com/")
        branch = self.config.course_branch
        colab = f"https://colab.research.google.com/github/{owner}/blob/{branch}/{path}"
        binder = f"https://mybinder.org/v2/gh/{owner}/{branch}?labpath={path}"
        line = nodes.paragraph("", "", download, classes=["exercise-links"])
        for text, address in ((words["colab"], colab), (words["binder"], binder)):
            line += [nodes.Text(" "), nodes.reference("", text, refuri=address, internal=False)]
        return line


def _row(entries) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", entry)) for entry in entries))


class CourseGlossary(SphinxDirective):
    """`{course-glossary}`: every term of glossary.toml in the book's language, with its name in the other."""

    def run(self) -> list[nodes.Node]:
        lang = self.config.course_language
        self.env.note_dependency(str(SHARED / "glossary.toml"))
        lines = ["```{glossary}"]
        for term in glossary_terms():
            lines += [term[lang], f"  **{term[other(lang)]}** · {term['says'][lang]}", ""]
        holder = nodes.Element()
        self.state.nested_parse(StringList([*lines, "```"], source="glossary.toml"), self.content_offset, holder)
        return holder.children


class LabelsFirst(SphinxTransform):
    """A section is known by its label, which is the same in both languages, and not by its translated heading."""

    default_priority = 300  # after targets were handed on to their sections

    def apply(self, **kwargs) -> None:
        for section in self.document.findall(nodes.section):
            labels = [self.document.nameids[n] for n in section["names"] if self.document.nametypes.get(n)]
            if labels and labels[0] in section["ids"]:
                section["ids"] = [labels[0], *(i for i in section["ids"] if i in labels[1:])]


class TermsTaughtHere(SphinxTransform):
    """Index entries for the terms that a chapter teaches, so that the search offers it first."""

    default_priority = 305  # after sections have their labels

    def apply(self, **kwargs) -> None:
        lang, page = self.config.course_language, self.env.docname
        taught = [term[lang] for term in glossary_terms() if term["taught"] == page]
        section = next(self.document.findall(nodes.section), None)
        if taught and section is not None:
            self.env.note_dependency(str(SHARED / "glossary.toml"))
            entries = [("single", term, section["ids"][0], "main", None) for term in taught]
            section.parent.insert(section.parent.index(section), index(entries=entries))


class JoinChineseLines(SphinxTransform):
    """Chinese needs no space where a line of the source ends."""

    default_priority = 310
    between = re.compile(rf"(?<={WIDE})\n(?={WIDE})|(?<={WIDE_MARK})\n|\n(?={WIDE_MARK})")

    def apply(self, **kwargs) -> None:
        if self.config.course_language != "zh":
            return
        for text in list(self.document.findall(nodes.Text)):
            if "\n" in text and not isinstance(
                text.parent, nodes.literal_block | nodes.math | nodes.math_block | nodes.raw
            ):
                text.parent.replace(text, nodes.Text(self.between.sub("", text)))


class MarksStayWithFormulas(SphinxTransform):
    """MathJax makes a formula a box, beside which a line may break: no line begins with a closing mark for that, and none
    ends with an opening one."""

    default_priority = 320  # after lines were joined
    opening, closing = re.compile(r"[（「『《]+$"), re.compile(r"^[，。、；：？！）」』》…]+")

    def apply(self, **kwargs) -> None:
        if self.config.course_language != "zh":
            return
        for formula in list(self.document.findall(nodes.math)):
            before = self._cut(formula, -1, self.opening)
            after = self._cut(formula, +1, self.closing)
            if before or after:
                whole = nodes.inline(classes=["unbroken"])
                formula.replace_self(whole)
                whole += [*before, formula, *after]

    def _cut(self, formula: nodes.math, step: int, marks: re.Pattern) -> list[nodes.Text]:
        """Take the marks off the text beside a formula."""
        place = formula.parent.index(formula) + step
        beside = formula.parent[place] if 0 <= place < len(formula.parent) else None
        found = marks.search(beside) if isinstance(beside, nodes.Text) else None
        if found is None:
            return []
        formula.parent.replace(beside, nodes.Text(marks.sub("", beside)))
        return [nodes.Text(found[0])]


class Chinese(SearchChinese):
    """Chinese search that also finds words of one character, such as 键."""

    def word_filter(self, stemmed_word: str) -> bool:
        return len(stemmed_word) > 1 or bool(HANZI.match(stemmed_word))


def page_context(app, pagename, templatename, context, doctree) -> None:
    lang = app.config.course_language
    words = LANGUAGES[lang]["words"]
    if pagename == "search":
        app.add_js_file("search.js")
    up = "../" * pagename.count("/")
    site = app.config.course_site
    address = "" if pagename == "index" else f"{pagename}.html"
    context.update(
        words=words,
        lang=lang,
        other_lang={"en": "en", "zh": "zh-CN"}[other(lang)],
        other_page=f"{up}../{other(lang)}/{pagename}.html",
        alternates=[("en", f"{site}en/{address}"), ("zh-CN", f"{site}zh/{address}"), ("x-default", f"{site}en/{address}")],
    )  # fmt: skip


def tidy(app, pagename, templatename, context, doctree) -> None:
    """Leave out what no page here uses, and mend what extensions write."""
    for kind in ("script_files", "css_files"):
        context[kind] = [asset for asset in context[kind] if not _unwanted(asset, pagename)]
    for old, new in IN_THE_BODY.items():
        if "body" in context:
            context["body"] = THEBE.sub("", context["body"].replace(old, new))


def _unwanted(asset, page: str) -> bool:
    filename = str(getattr(asset, "filename", "") or "")
    elsewhere = any(name in filename and page != its_page for name, its_page in ONLY_ON.items())
    return elsewhere or bool(NOT_WANTED.search(f"{filename} {asset.attributes.get('body') or ''}"))


def _say_in_the_books_language(app) -> None:
    """Give the theme the words that its own translations lack."""
    language = LANGUAGES[app.config.course_language]
    if not language["strings"]:
        return
    catalog = Catalog(locale=language["locale"])
    for english, translated in language["strings"].items():
        catalog.add(english, translated)
    folder = Path(tempfile.mkdtemp(prefix="course-book-"))
    messages = folder / language["locale"] / "LC_MESSAGES"
    messages.mkdir(parents=True)
    for domain in ("sphinx", "booktheme"):
        with open(messages / f"{domain}.mo", "wb") as file:
            write_mo(file, catalog)
        app.add_message_catalog(domain, str(folder))


def setup(app) -> dict:
    app.add_config_value("course_language", "en", "env")
    app.add_config_value("course_site", "", "html")
    app.add_config_value("course_repository", "", "env")
    app.add_config_value("course_branch", "main", "env")
    app.setup_extension("explorables")
    app.setup_extension("upstream_fixes")
    app.add_directive("exercise", ExerciseCard)
    app.add_directive("course-glossary", CourseGlossary)
    app.add_transform(LabelsFirst)
    app.add_transform(TermsTaughtHere)
    app.add_transform(JoinChineseLines)
    app.add_transform(MarksStayWithFormulas)
    app.connect("html-page-context", page_context, priority=1)  # the theme looks at our templates while it runs
    app.connect("html-page-context", tidy, priority=900)
    search_languages["zh"] = Chinese
    _say_in_the_books_language(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
