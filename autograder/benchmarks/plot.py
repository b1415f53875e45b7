"""The picture of the throughput that the README shows."""

from pathlib import Path

import matplotlib

from .timing import Numbers

NAMES = {
    "floor_seconds_each": "fork, load, call:\nthe floor",
    "ours_seconds_each": "autograder grade",
    "otter_run_seconds_each": "otter run",
    "stock_nbgrader_seconds_each": "nbgrader autograde",
}


def draw(measured: Numbers, path: Path) -> Path:
    """Draw the submissions per minute on a logarithmic axis, each bar with its number."""
    from matplotlib.figure import Figure

    seconds = {name: measured[key] for key, name in NAMES.items()}
    bars = {name: 60 / each for name, each in seconds.items() if isinstance(each, float)}
    with matplotlib.rc_context({"svg.hashsalt": "throughput", "font.size": 11}):
        figure = Figure(figsize=(7, 0.6 + 0.55 * len(bars)), layout="constrained")
        axes = figure.subplots()
        drawn = axes.barh(
            list(bars), list(bars.values()), color=["#9aa4af", "#1f6feb", "#c9d1d9", "#c9d1d9"][: len(bars)]
        )
        axes.bar_label(drawn, [f"{value:,.0f}" for value in bars.values()], padding=4)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.margins(x=0.15)
        axes.set_xlabel("submissions of 06_masks per minute")
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, metadata={"Date": None})
    return path
