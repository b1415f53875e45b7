"""Our fixes for faults in the tools that build the book."""

import io

import nbformat
from myst_nb.core.utils import coalesce_streams
from sphinx.search import js_index
from upstream_fixes import in_one_piece, with_index_entries


def test_a_print_sent_in_pieces_is_joined():
    pieces = [nbformat.v4.new_output("stream", name="stdout", text=text) for text in ("one ", "line\n", "another\n")]
    [whole] = in_one_piece(coalesce_streams)(pieces)
    assert whole["text"] == "one line\nanother\n"
    assert pieces[0]["text"] == "one "


def test_index_entries_of_pages_that_are_not_rebuilt_are_kept():
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
