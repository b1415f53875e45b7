"""What the tools that build the book get wrong stays mended."""

import io

import nbformat
from mends import in_one_piece, with_index_entries
from myst_nb.core.utils import coalesce_streams
from sphinx.search import js_index


def test_a_print_that_came_in_pieces_is_one():
    pieces = [nbformat.v4.new_output("stream", name="stdout", text=text) for text in ("one ", "line\n", "another\n")]
    [whole] = in_one_piece(coalesce_streams)(pieces)
    assert whole["text"] == "one line\nanother\n"
    assert pieces[0]["text"] == "one "


def test_index_entries_of_pages_that_are_not_built_again_are_kept():
    class Index:
        formats = {"js": js_index}  # noqa: RUF012
        _index_entries = {"stale": []}  # noqa: RUF012

    frozen = {
        "docnames": ["05_softmax", "06_masks"],
        "indexentries": {"mask": [[1, "masks", True], [0, "softmax", False]]},
    }
    stream = io.StringIO(js_index.dumps(frozen))
    index = Index()
    with_index_entries(lambda self, stream, format: stream.read())(index, stream, "js")
    assert index._index_entries == {"06_masks": [("mask", "masks", "main")], "05_softmax": [("mask", "softmax", "")]}
