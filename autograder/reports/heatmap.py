"""A small tensor as a table of coloured numbers, as HTML and as text.

The colours are half transparent and the numbers have the page's text colour, so the table is readable on light and dark
pages.
"""

from html import escape
from typing import TYPE_CHECKING

from autograder.results import Excerpt

if TYPE_CHECKING:
    import torch

MOST = 8  # rows and columns shown
BLUE, ORANGE, PURPLE = "56,139,253", "240,136,62", "163,113,247"  # above zero, below zero, not finite
CELL = "padding:1px 7px;text-align:right;border:1px solid rgba(128,128,128,.35);font:12px/1.5 ui-monospace,monospace"
WORST = ";outline:2px solid currentColor;outline-offset:-2px;font-weight:bold"


def excerpt(tensor: "torch.Tensor", worst: tuple[int, ...]) -> Excerpt:
    """The matrix that holds the worst element, cut to a few rows and columns around it."""
    matrix = tensor.detach()[worst[:-2]] if tensor.dim() > 2 else tensor.detach()
    row, column = (0, 0, *worst)[-2:]
    matrix = matrix.reshape(1, 1) if matrix.dim() == 0 else matrix.reshape(-1, matrix.shape[-1])
    top, left = (_first(at, size) for at, size in zip((row, column), matrix.shape, strict=True))
    shown = matrix[top : top + MOST, left : left + MOST]
    spans = [
        _span(start, count, size) for start, count, size in zip((top, left), shown.shape, matrix.shape, strict=True)
    ]
    lead = [str(i) for i in worst[:-2]]
    where = f"[{', '.join([*lead, *spans[2 - min(tensor.dim(), 2) :]])}]"
    everything = not lead and shown.shape == matrix.shape
    return Excerpt("" if everything else where, shown.tolist(), (row - top, column - left))


def _first(at: int, size: int) -> int:
    return min(max(at - MOST // 2, 0), max(size - MOST, 0))


def _span(start: int, count: int, size: int) -> str:
    return ":" if count == size else f"{start}:{start + count}"


def scale(*excerpts: Excerpt) -> float:
    """The largest finite number in all of them, so that equal numbers get equal colours."""
    numbers = [abs(float(x)) for shown in excerpts for row in shown.rows for x in row]
    return max([x for x in numbers if x < float("inf")], default=0.0) or 1.0


def html(title: str, shown: Excerpt, largest: float, marked: str) -> str:
    """The table as HTML. `marked` describes the worst element for readers who cannot see its frame."""
    rows = "".join(
        f'<tr style="background:none">{"".join(_cell(x, (r, c) == shown.worst, largest, marked) for c, x in enumerate(row))}</tr>'
        for r, row in enumerate(shown.rows)
    )
    where = f' <code style="background:none">{escape(shown.where)}</code>' if shown.where else ""
    return (
        '<table style="border-collapse:collapse;margin:.3em 1.5em .3em 0;display:inline-table;width:auto;color:inherit">'
        '<caption style="text-align:left;caption-side:top;padding:0;white-space:nowrap;color:inherit;font-size:.9em">'
        f"{escape(title)}{where}</caption><tbody>{rows}</tbody></table>"
    )


def _cell(x: float, worst: bool, largest: float, marked: str) -> str:
    note = f' title="{escape(marked)}" aria-label="{escape(f"{number(x)}, {marked}")}"' if worst else ""
    return f'<td style="{CELL};background:{_colour(x, largest)}{WORST if worst else ""}"{note}>{number(x)}</td>'


def _colour(x: float, largest: float) -> str:
    x = float(x)
    if x != x or abs(x) == float("inf"):
        return f"rgba({PURPLE},.45)"
    if x == 0:
        return "none"
    return f"rgba({BLUE if x > 0 else ORANGE},{0.1 + 0.45 * min(abs(x) / largest, 1):.2f})"


def text(title: str, shown: Excerpt) -> str:
    """The table as text, with the worst element in brackets."""
    cells = [[f" {number(x)} " for x in row] for row in shown.rows]
    row, column = shown.worst
    cells[row][column] = f"[{number(shown.rows[row][column])}]"
    width = max(len(cell) for row in cells for cell in row)
    lines = ["".join(cell.rjust(width) for cell in row) for row in cells]
    return "\n".join([f"{title} {shown.where}".rstrip(), *(f"  {line}" for line in lines)])


def number(x: float) -> str:
    if isinstance(x, bool | int):
        return str(int(x))
    if x == 0:
        return "0"
    if x != x:
        return "NaN"
    if abs(x) == float("inf"):
        return "∞" if x > 0 else "−∞"
    size = abs(x)
    short = f"{x:.2f}" if 0.01 <= size < 1000 else f"{x:.1f}" if 1000 <= size < 1e6 else f"{x:.2g}"
    return short.replace("-", "−")
