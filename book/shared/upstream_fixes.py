"""Two faults of the tools that build the book, mended here.

- A print that a kernel sends in two pieces becomes two lines (MyST-NB ends every piece with a newline).
- A build of some pages forgets the index entries of the others (Sphinx saves them with the search index and does not
  read them back), and the search no longer offers the chapter that teaches a term.
"""

from functools import wraps

from myst_nb.core import render
from sphinx.search import IndexBuilder


def in_one_piece(coalesce):
    @wraps(coalesce)
    def coalesced(outputs: list) -> list:
        whole = {}
        kept = []
        for output in outputs:
            if output["output_type"] == "stream" and output["name"] in whole:
                whole[output["name"]]["text"] += output["text"]
                continue
            if output["output_type"] == "stream":
                output = whole[output["name"]] = type(output)(output)  # the cached one stays as it is
            kept.append(output)
        return coalesce(kept)

    return coalesced


def with_index_entries(load):
    @wraps(load)
    def loaded(self, stream, format) -> None:
        load(self, stream, format)
        stream.seek(0)
        frozen = (self.formats[format] if isinstance(format, str) else format).load(stream)
        self._index_entries.clear()
        for term, places in frozen["indexentries"].items():
            for page, place, is_main in places:
                entry = term, place, "main" if is_main else ""
                self._index_entries.setdefault(frozen["docnames"][page], []).append(entry)

    return loaded


def setup(app) -> dict:
    render.coalesce_streams = in_one_piece(render.coalesce_streams)
    IndexBuilder.load = with_index_entries(IndexBuilder.load)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
