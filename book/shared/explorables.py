"""The directive for pictures that one can play with.

    ```{explorable} mask-painter
    :label: A mask to paint
    What a reader without JavaScript sees, in MyST.
    ```

The element `abh-mask-painter` is defined in static/explorables/mask-painter.js, which only pages with that directive load.
"""

from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

SCRIPTS = Path(__file__).parent / "static" / "explorables"


class explorable(nodes.General, nodes.Element):
    """A custom element, and in it the content that is shown until it starts."""


class Explorable(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"label": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if not (SCRIPTS / f"{name}.js").is_file():
            raise self.error(f"no explorable is called {name!r} in book/shared/static/explorables")
        if not (self.options.get("label") and self.content):
            raise self.error(f"the explorable {name!r} needs a `:label:` and something to show without JavaScript")
        node = explorable(name=name, label=self.options["label"])
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def open_element(translator, node) -> None:
    label = translator.attval(node["label"])
    translator.body.append(f'<figure class="explorable" aria-label="{label}"><abh-{node["name"]}>')


def close_element(translator, node) -> None:
    translator.body.append(f"</abh-{node['name']}></figure>\n")


def pass_over(translator, node) -> None:
    """Other writers have only the content."""


def load_scripts(app, pagename, templatename, context, doctree) -> None:
    """Scripts and styles for the pages that have something to play with, and for no others."""
    names = {node["name"] for node in doctree.findall(explorable)} if doctree else set()
    for name in sorted(names):
        app.add_js_file(f"explorables/{name}.js", type="module")
    if names:
        app.add_css_file("explorables/explorables.css")


def setup(app) -> dict:
    others = dict.fromkeys(("latex", "text", "man", "texinfo"), (pass_over, pass_over))
    app.add_node(explorable, html=(open_element, close_element), **others)
    app.add_directive("explorable", Explorable)
    app.connect("html-page-context", load_scripts, priority=1)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
